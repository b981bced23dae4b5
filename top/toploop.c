/* SPDX-License-Identifier: MIT */
/* toploop.c: see toploop.h. */
#include "top/toploop.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "collect/clock.h"
#include "top/topdraw.h"
#include "top/topscreen.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)

enum {
    NAMES_MS = 50,   /* how often it is looked whether names are there */
    SHARE = 20,      /* of the time is spent looking at most: 1 / SHARE */
    ONCE_MS = 10000, /* names are waited for so long */
    ONCE_STEP_MS = 100,
    LARGE = 1 << 20,
};

struct loop {
    const struct toploop_options *options;
    struct topsource source; /* open if state.source is set */
    struct toplist list;
    struct topstate state;
    struct topgrid grid;
    sigset_t before; /* signals that were blocked */
    int signals;     /* a descriptor */
    uint64_t next_ns;
};

/* ---- Looking ---- */

/* Looks, and makes rows of it. 0 or -1. */
static int loop_look(struct loop *loop, struct error *error) {
    struct topsource *source = &loop->source;
    if (loop->state.source == NULL) {
        int result = toplist_look(&loop->list, error);
        topstate_move_list(&loop->state, 0);
        return result;
    }
    if (topsource_look(source, error) != 0) {
        return -1;
    }
    if (!source->costs.is_marked) {
        topstate_mark(&loop->state);
    }
    return topstate_refresh(&loop->state) == 0 ? 0 : error_set(error, "out of memory");
}

/* Whether rows have other names now. */
static bool look_for_names(struct loop *loop) {
    return loop->state.source != NULL && loop->source.profile != NULL &&
           topnames_look(loop->source.names, loop->source.profile) &&
           topstate_refresh(&loop->state) == 0;
}

static bool is_naming(const struct loop *loop) {
    return loop->state.source != NULL && topnames_is_busy(loop->source.names);
}

/* A file takes longer to read than a region. */
static uint64_t pause_of(const struct loop *loop) {
    double seconds =
        loop->state.source != NULL ? loop->source.looking_seconds : loop->list.looking_seconds;
    uint64_t least = (uint64_t)(seconds * SHARE * 1e9);
    return least > loop->state.interval_ns ? least : loop->state.interval_ns;
}

/* ---- Opening ---- */

/* What runs is named by its region, else as the user has it. */
static int open_named(struct loop *loop, const char *name, bool is_region, struct error *error) {
    if (topsource_open(&loop->source, name, is_region, loop->options->debug_folders, error) != 0) {
        return -1;
    }
    loop->state.source = &loop->source;
    topstate_begin(&loop->state);
    return loop_look(loop, error);
}

static void close_source(struct loop *loop) {
    if (loop->state.source != NULL) {
        topsource_close(&loop->source);
        loop->state.source = NULL;
    }
}

/* Of several there is something to choose. A file may be that of the first process of a run that
 * goes on. */
static int open_list(struct loop *loop, struct error *error) {
    const char *name = loop->options->name;
    struct toplist *list = &loop->list;
    struct stat status;
    list->of = name;
    loop->state.list = list;
    loop->state.page = TOPSTATE_LIST;
    if (loop_look(loop, error) != 0) {
        return -1;
    }
    if (list->count == 0 ||
        (list->count == 1 && name != NULL && stat(name, &status) == 0 && S_ISREG(status.st_mode))) {
        loop->state.list = NULL;
        return name != NULL
                   ? open_named(loop, name, false, error)
                   : error_set(error, "none of your programs is profiled now: start one with "
                                      "memtrace run, or attach to one with memtrace attach PID");
    }
    return list->count == 1
               ? open_named(loop, list->items[0].path, list->items[0].is_running, error)
               : 0;
}

static void close_loop(void *what) {
    struct loop *loop = what;
    topstate_free(&loop->state);
    topgrid_free(&loop->grid);
    close_source(loop);
    toplist_free(&loop->list);
    if (loop->signals >= 0) {
        close(loop->signals);
    }
}

/* Of the job, which ends where nothing can be opened. */
static struct loop *open_loop(const struct toploop_options *options) {
    struct loop *loop = job_alloc(sizeof *loop);
    struct error error;
    uint64_t pid;
    mallopt(M_MMAP_THRESHOLD, LARGE); /* what a look needs for a moment goes back to the system */
    *loop = (struct loop){.options = options, .signals = -1};
    loop->state = (struct topstate){
        .rows = {.by = options->by, .sort = options->sort, .reverse = options->reverse},
        .interval_ns = options->interval_ns,
        .unicode = options->unicode,
    };
    job_undo(close_loop, loop);
    if (options->filter != NULL && topstate_filter(&loop->state, options->filter) != 0) {
        job_fail("%s", loop->state.message);
    }
    job_check(options->name != NULL && topsource_is_number(options->name, &pid)
                  ? open_named(loop, options->name, false, &error)
                  : open_list(loop, &error),
              &error);
    return loop;
}

/* What could not be opened leaves the list as it was. */
static void open_selected(struct loop *loop) {
    const struct toplist_item *item = &loop->list.items[loop->state.list_selected];
    struct error error;
    loop->next_ns = 0;
    if (open_named(loop, item->path, item->is_running, &error) != 0) {
        close_source(loop);
        loop->state.page = TOPSTATE_LIST;
        snprintf(loop->state.message, sizeof loop->state.message, "%s", error.message);
        return;
    }
    loop->next_ns = clock_now_ns() + pause_of(loop);
    look_for_names(loop);
}

/* ---- On a terminal ---- */

/* All keys that are there. true: that was the last one. */
static bool mind_keys(struct loop *loop) {
    bool is_gone;
    unsigned key;
    while ((key = topscreen_key(&is_gone)) != 0) {
        loop->state.copied[0] = '\0';
        switch (topstate_press(&loop->state, key)) {
        case TOPSTATE_DRAW:
            if (loop->state.copied[0] != '\0') {
                topscreen_copy(loop->state.copied);
            }
            break;
        case TOPSTATE_MAKE:
            if (loop->state.source != NULL) {
                topstate_refresh(&loop->state);
            } else {
                toplist_sort(&loop->list);
                topstate_move_list(&loop->state, 0);
            }
            break;
        case TOPSTATE_OPEN:
            open_selected(loop);
            break;
        case TOPSTATE_BACK:
            close_source(loop);
            loop->state.page = TOPSTATE_LIST;
            loop->state.is_paused = false;
            loop->next_ns = 0;
            break;
        case TOPSTATE_QUIT:
            return true;
        }
    }
    return is_gone;
}

/* Of those that come by a descriptor. The signal that ends all; 0: it goes on. */
static int mind_signal(struct loop *loop) {
    struct signalfd_siginfo info;
    if (read(loop->signals, &info, sizeof info) != (ssize_t)sizeof info) {
        return 0;
    }
    switch (info.ssi_signo) {
    case SIGWINCH:
        return 0;
    case SIGCONT:
        topscreen_redraw();
        return 0;
    default:
        return (int)info.ssi_signo;
    }
}

static int wait_ms(const struct loop *loop) {
    uint64_t now = clock_now_ns();
    uint64_t ms = now < loop->next_ns ? (loop->next_ns - now) / MILLISECOND + 1 : 0;
    if ((loop->state.source != NULL && !loop->source.is_live &&
         !topsource_goes_on(&loop->source)) ||
        loop->state.is_paused) {
        ms = INT32_MAX; /* until there is a key */
    }
    if (is_naming(loop) && ms > NAMES_MS) {
        ms = NAMES_MS;
    }
    if (loop->state.ask.whom != TOPSTATE_ASKS_NOBODY && ms > TOPSTATE_ASK_MS) {
        ms = TOPSTATE_ASK_MS;
    }
    return ms < INT32_MAX ? (int)ms : -1;
}

/* 0, or -1: what it looks at cannot be read any more. */
static int look_if_due(struct loop *loop) {
    struct error error;
    int result;
    if (loop->state.is_paused || clock_now_ns() < loop->next_ns) {
        look_for_names(loop);
        return 0;
    }
    if (loop->state.source != NULL && topsource_follow(&loop->source)) {
        /* Another program is in the process that was looked at. Filter and order stay. */
        topstate_begin(&loop->state);
        snprintf(loop->state.message, sizeof loop->state.message, "it has become %.200s (exec)",
                 pathname_base(loop->source.profile->header.executable));
    }
    result = loop_look(loop, &error);
    if (result != 0) {
        loop->next_ns = clock_now_ns() + pause_of(loop);
        snprintf(loop->state.message, sizeof loop->state.message, "%s", error.message);
        return -1;
    }
    loop->next_ns = clock_now_ns() + pause_of(loop);
    look_for_names(loop);
    return 0;
}

/* The signal that ended it, or 0. */
static int loop_go_on(struct loop *loop) {
    loop->next_ns = clock_now_ns() + pause_of(loop);
    look_for_names(loop);
    for (;;) {
        struct pollfd descriptors[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                       {.fd = loop->signals, .events = POLLIN}};
        int signal = 0;
        if (topscreen_fit(&loop->grid) == 0) {
            topdraw(&loop->state, &loop->grid, topdraw_above(loop->grid.height));
            topscreen_show(&loop->grid);
        }
        if (poll(descriptors, 2, wait_ms(loop)) < 0 && errno != EINTR) {
            return 0;
        }
        if ((descriptors[1].revents & POLLIN) != 0) {
            signal = mind_signal(loop);
        }
        if (signal != 0) {
            return signal;
        }
        if (mind_keys(loop) || (descriptors[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
            return 0;
        }
        topstate_hear(&loop->state);
        if (look_if_due(loop) != 0 && loop->state.source != NULL) {
            loop->source.is_live = false; /* what was read of it stays on the screen */
        }
    }
}

/* Those that end it come when the terminal can be put right; Ctrl-Z is for ncurses. */
static void catch_signals(struct loop *loop) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGCONT);
    sigprocmask(SIG_BLOCK, &set, &loop->before);
    loop->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (loop->signals < 0) {
        job_fail("cannot wait for signals: %s", strerror(errno));
    }
}

int toploop_run(const struct toploop_options *options) {
    struct loop *loop = open_loop(options);
    struct error error;
    int signal;
    catch_signals(loop);
    job_check(topscreen_open(options->color, &error), &error);
    signal = loop_go_on(loop);
    topscreen_close();
    sigprocmask(SIG_SETMASK, &loop->before, NULL);
    job_undo_now(loop);
    return signal == SIGINT ? 0 : signal;
}

/* ---- Once ---- */

static void wait_for_names(struct loop *loop) {
    uint64_t until_ns = clock_now_ns() + ONCE_MS * MILLISECOND;
    look_for_names(loop);
    while (is_naming(loop) && clock_now_ns() < until_ns) {
        topnames_wait(loop->source.names, ONCE_STEP_MS);
        look_for_names(loop);
    }
}

void toploop_once(const struct toploop_options *options, size_t width, size_t rows, FILE *out) {
    struct loop *loop = open_loop(options);
    struct topstate *state = &loop->state;
    struct error error;
    size_t count;
    if (state->source == NULL || loop->source.is_live) {
        struct timespec pause = {.tv_sec = (time_t)(options->interval_ns / 1000000000u),
                                 .tv_nsec = (long)(options->interval_ns % 1000000000u)};
        wait_for_names(loop);
        nanosleep(&pause, NULL);
        job_check(loop_look(loop, &error), &error);
    }
    wait_for_names(loop);
    count = state->source != NULL ? state->rows.count : loop->list.count;
    if (topgrid_reset(&loop->grid, width, TOPDRAW_ABOVE + (count < rows ? count : rows) + 1) != 0) {
        job_fail_memory();
    }
    state->selected = state->list_selected = SIZE_MAX; /* no row is */
    topdraw(state, &loop->grid, TOPDRAW_ABOVE);
    for (size_t row = 0; row + TOPDRAW_BELOW < loop->grid.height; row++) {
        if (row != TOPDRAW_ABOVE - 2) { /* the charts have but two points */
            topgrid_write(&loop->grid, row, out);
        }
    }
}
