/* SPDX-License-Identifier: MIT */
/* launch.c: from the program's start to its end. See launch.h. */
#include "cli/launch.h"

#include "cli/cli.h"
#include "cli/preload.h"
#include "cli/target.h"
#include "collect/adopt.h"
#include "collect/collector.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { FIRST_LOOK_MS = 2, LONGEST_LOOK_MS = 100 };

struct launch {
    struct variables *variables;
    char added[1024];
    char *preload;
    char *anchored[3]; /* patterns that were made absolute */
    char program[PATH_MAX];
    struct child child;
    struct collector work;
    uint64_t start_ticks;
    int look_ms; /* not attached: when to look for the region again */
    int timer;
    bool recorded;      /* a region was seen, or why there is none was said */
    int64_t folders_ns; /* when the folders of regions had last changed as the program started */
};

/* --- starting --------------------------------------------------------------------------------- */

static int set_preload(struct launch *launch) {
    char library[PATH_MAX];
    const char *old = getenv("LD_PRELOAD");
    if (preload_path(library) != 0) {
        return CLI_FAILURE;
    }
    if (asprintf(&launch->preload, "%s%s%s", library, old != NULL && old[0] != '\0' ? ":" : "",
                 old != NULL ? old : "") < 0) {
        launch->preload = NULL;
        return cli_error("out of memory");
    }
    variables_set(launch->variables, "LD_PRELOAD", launch->preload);
    return 0;
}

/* Programs that follow may run in other folders: their files go where the first one's do. */
static int anchor(struct launch *launch, const char *name, const char *otherwise, char **text) {
    const char *value = variables_get(launch->variables, name);
    char folder[PATH_MAX];
    char *at;
    value = value != NULL ? value : otherwise;
    if (value == NULL || value[0] == '/' || getcwd(folder, sizeof folder) == NULL) {
        return 0;
    }
    *text = malloc(2 * strlen(folder) + 1 + strlen(value) + 1);
    if (*text == NULL) {
        return cli_error("out of memory");
    }
    at = *text;
    for (const char *from = folder; *from != '\0'; from++) {
        *at++ = *from;
        if (*from == '%') { /* of no meaning in a folder's name */
            *at++ = *from;
        }
    }
    *at++ = '/';
    strcpy(at, value);
    variables_set(launch->variables, name, *text);
    return 0;
}

static int anchor_files(struct launch *launch) {
    const char *follow = variables_get(launch->variables, "MEMTRACE_FOLLOW");
    if (follow == NULL || strcmp(follow, "1") != 0) {
        return 0;
    }
    return anchor(launch, "MEMTRACE_OUTPUT", "memtrace.%e.%p.mtp", &launch->anchored[0]) |
           anchor(launch, "MEMTRACE_RECORD_OUTPUT", "memtrace.%e.%p.mtr", &launch->anchored[1]) |
           anchor(launch, "MEMTRACE_LOG", NULL, &launch->anchored[2]);
}

/* The runtime takes all of these out of the program's environment again. */
static void name_added(struct launch *launch) {
    size_t length = 0;
    variables_set(launch->variables, "MEMTRACE_ADDED", launch->added);
    for (size_t i = 0; i < launch->variables->count && length < sizeof launch->added; i++) {
        length += (size_t)snprintf(launch->added + length, sizeof launch->added - length, "%s%s",
                                   i != 0 ? "," : "", launch->variables->list[i].name);
    }
}

/* The latest change in a folder of regions. */
static int64_t folders_changed_ns(void) {
    struct region_folders folders;
    size_t count = region_folders(geteuid(), &folders);
    int64_t latest = 0;
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        if (stat(folders.path[i], &status) == 0) {
            int64_t ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
            latest = ns > latest ? ns : latest;
        }
    }
    return latest;
}

/* 0, or the exit status with the line printed. */
static int start(struct launch *launch, char **argv) {
    int status = target_find(argv[0], launch->program);
    const char *obstacle;
    if (status != 0) {
        cli_error("%s: %s", argv[0], status == 127 ? "command not found" : "cannot be executed");
        return status;
    }
    obstacle = target_obstacle(launch->program);
    if (obstacle != NULL) {
        cli_error("%s %s: nothing will be recorded", argv[0], obstacle);
        launch->recorded = true; /* no second line at the end */
    } else {
        if (set_preload(launch) != 0 || anchor_files(launch) != 0) {
            return CLI_FAILURE;
        }
        variables_set_number(launch->variables, "MEMTRACE_COLLECTOR", (uint64_t)getpid(), "");
        name_added(launch);
    }
    launch->folders_ns = folders_changed_ns();
    status = child_start(&launch->child, launch->program, argv, launch->variables->list,
                         launch->variables->count);
    if (status != 0) {
        cli_error("cannot run %s: %s", argv[0], strerror(errno));
        return status;
    }
    region_start_ticks(launch->child.pid, &launch->start_ticks);
    return 0;
}

/* --- while it runs ---------------------------------------------------------------------------- */

static bool attach_in(struct launch *launch, const char *folder) {
    for (unsigned number = 1; number <= REGION_NUMBERS; number++) {
        char path[512];
        region_path(folder, launch->child.pid, launch->start_ticks, number, path, sizeof path);
        if (collector_attach(&launch->work, path, NULL) == HELD_OK) {
            return true;
        }
    }
    return false;
}

/* The child's region, if it is there by now; after an exec: those that are left, one by one. */
static bool attach(struct launch *launch) {
    struct region_folders folders;
    size_t count = region_folders(geteuid(), &folders);
    for (size_t i = 0; i < count && !collector_attached(&launch->work); i++) {
        launch->recorded |= attach_in(launch, folders.path[i]);
    }
    return collector_attached(&launch->work);
}

static void finish(struct launch *launch) {
    char *text = collector_finish(&launch->work);
    if (text != NULL) {
        collector_write(STDERR_FILENO, text);
    }
    free(text);
}

/* Does what is due; returns the milliseconds until something else is. */
static int tick(struct launch *launch) {
    if (collector_attached(&launch->work) && collector_over(&launch->work)) {
        finish(launch);
        launch->look_ms = FIRST_LOOK_MS;
    }
    if (!collector_attached(&launch->work) && !attach(launch)) {
        int wait = launch->look_ms;
        launch->look_ms = wait * 2 < LONGEST_LOOK_MS ? wait * 2 : LONGEST_LOOK_MS;
        return wait;
    }
    return collector_tick(&launch->work);
}

static void set_timer(int timer, int ms) {
    struct itimerspec when = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}};
    timerfd_settime(timer, 0, &when, NULL);
}

static void wait_for_end(struct launch *launch) {
    struct pollfd waits[2] = {{.fd = launch->child.signals, .events = POLLIN},
                              {.fd = launch->timer, .events = POLLIN}};
    set_timer(launch->timer, FIRST_LOOK_MS);
    launch->look_ms = FIRST_LOOK_MS;
    child_handle_signals(&launch->child);
    while (!launch->child.ended) {
        uint64_t expirations;
        if (poll(waits, 2, -1) < 0 && errno != EINTR) {
            break;
        }
        if ((waits[0].revents & POLLIN) != 0) {
            child_handle_signals(&launch->child);
        }
        if ((waits[1].revents & POLLIN) != 0 &&
            read(launch->timer, &expirations, sizeof expirations) > 0 && !launch->child.ended) {
            set_timer(launch->timer, tick(launch));
        }
    }
}

static void note_adopted(void *context, const struct adopted *adopted) {
    char line[6000];
    (void)context;
    adopt_line(adopted, line, sizeof line);
    cli_error("%s", line);
}

/* The child is a zombie here, so that nobody else has its pid and other commands can see that its
 * parent will finish the region. */
static void finish_all(struct launch *launch) {
    const char *mode = getenv("MEMTRACE");
    bool kept = false;
    while (!kept &&
           (collector_attached(&launch->work) || attach(launch))) { /* after an exec: several */
        char path[sizeof launch->work.held.region.path];
        strcpy(path, launch->work.held.region.path);
        finish(launch);
        kept = access(path, F_OK) == 0; /* it could not be written anywhere */
    }
    /* A region may have come and gone before we looked, as that of `sh -c "exec program"`. */
    if (!launch->recorded && folders_changed_ns() == launch->folders_ns &&
        (mode == NULL || strcmp(mode, "off") != 0)) {
        cli_error("nothing was recorded of %s", launch->program);
    }
}

/* Sets the variables for the program, and what it needs besides. */
static int run(struct variables *variables, char **argv) {
    static struct launch launch; /* large */
    int status;
    launch.variables = variables;
    launch.work = COLLECTOR_NONE;
    adopt_killed(note_adopted, NULL, NULL);
    launch.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (launch.timer < 0) {
        return cli_error("cannot make a timer: %s", strerror(errno));
    }
    status = start(&launch, argv);
    if (status == 0) {
        wait_for_end(&launch);
        finish_all(&launch);
        child_reap(&launch.child);
        adopt_killed(note_adopted, NULL, NULL); /* its children */
        status = child_imitate(&launch.child);
    }
    for (size_t i = 0; i < sizeof launch.anchored / sizeof launch.anchored[0]; i++) {
        free(launch.anchored[i]);
    }
    free(launch.preload);
    return status;
}

int launch_command(struct variables *variables, int argc, char **argv, const char *usage,
                   const struct variables_option *own) {
    int first = 0;
    int status = variables_parse(variables, argc, argv, own, &first);
    if (status > 0) {
        return status;
    }
    if (status < 0) {
        fputs(usage, stdout);
        variables_print_help();
        return cli_finish(CLI_OK);
    }
    return run(variables, argv + first);
}
