/* SPDX-License-Identifier: MIT */
/*
 * run.c: `memtrace run`: starts a program with the runtime preloaded, is its collector while it
 * runs, writes its profile when it is gone, and ends as it ended.
 */
#include "cli/child.h"
#include "cli/cli.h"
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

static const char usage[] =
    "Usage: memtrace run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs PROGRAM under the profiler and leaves a profile file. The exit status is PROGRAM's.\n"
    "\n"
    "  -o, --output PATTERN  where the profile goes: %p pid, %e program, %t time, %n number\n"
    "                        (default memtrace.%e.%p.mtp)\n"
    "  -e, --every TIME      print the largest call paths every TIME: 500ms, 30s, 5m, 1h\n"
    "  -c, --churn SIZE      ... and/or every SIZE bytes allocated plus freed: 64M, 1G\n"
    "  -n, --top N           how many call paths; 0: all (default 10)\n"
    "  -l, --log FILE        print them to FILE, not to stderr\n"
    "      --summary, --no-summary\n"
    "                        the summary at the end (default: yes)\n"
    "      --stacks KIND     none: totals only; short: the program's own modules; full (default)\n"
    "      --contexts N      the most call paths to keep apart\n"
    "      --unwind MODE     how prebuilt code is walked: auto (default), patch, verify, fp,\n"
    "                        libunwind\n"
    "      --inject          also follow libraries that bind an allocator of their own\n"
    "  -h, --help            this text\n"
    "\n"
    "Each option is also an environment variable: MEMTRACE_OUTPUT, MEMTRACE_EVERY, ...\n";

enum { VARIABLES = 16, FIRST_LOOK_MS = 2, LONGEST_LOOK_MS = 100 };

struct run {
    struct child_variable variables[VARIABLES];
    size_t variable_count;
    char every[32];
    char churn[32];
    char added[512];
    char collector[16];
    char *preload;
    char program[PATH_MAX];
    struct child child;
    struct collector work;
    uint64_t start_ticks;
    int look_ms; /* not attached: when to look for the region again */
    int timer;
    bool recorded;      /* a region was seen, or why there is none was said */
    int64_t folders_ns; /* when the folders of regions had last changed as the program started */
};

static void set_variable(struct run *run, const char *name, const char *value) {
    size_t i = 0;
    while (i < run->variable_count && strcmp(run->variables[i].name, name) != 0) {
        i++;
    }
    if (i < VARIABLES) {
        run->variables[i] = (struct child_variable){name, value};
        run->variable_count += i == run->variable_count;
    }
}

static int wrong(const struct cli_scan *scan, const char *wanted) {
    return cli_usage("run", "%s \"%s\": %s", scan->name, scan->value, wanted);
}

/* 0, or CLI_USAGE with the line printed. */
static int set_period(struct run *run, const struct cli_scan *scan) {
    uint64_t ns;
    if (cli_parse_duration(scan->value, &ns) != 0 || (ns > 0 && ns < 1000000)) {
        return wrong(scan, "a time such as 500ms, 30s, 5m or 1h is wanted");
    }
    snprintf(run->every, sizeof run->every, "%" PRIu64 "ms", ns / 1000000);
    set_variable(run, "MEMTRACE_EVERY", run->every);
    return 0;
}

static int set_churn(struct run *run, const struct cli_scan *scan) {
    uint64_t bytes;
    if (cli_parse_bytes(scan->value, &bytes) != 0) {
        return wrong(scan, "a size such as 64M or 1G is wanted");
    }
    snprintf(run->churn, sizeof run->churn, "%" PRIu64, bytes);
    set_variable(run, "MEMTRACE_CHURN", run->churn);
    return 0;
}

static int set_number(struct run *run, const struct cli_scan *scan, const char *name,
                      uint64_t least) {
    uint64_t value;
    if (cli_parse_u64(scan->value, &value) != 0 || value > UINT32_MAX || value < least) {
        return wrong(scan, "a number is wanted");
    }
    set_variable(run, name, scan->value);
    return 0;
}

static int set_text(struct run *run, const struct cli_scan *scan, const char *name) {
    if (scan->value[0] == '\0' || strlen(scan->value) >= 1024) {
        return wrong(scan, "a file name of at most 1,023 bytes is wanted");
    }
    set_variable(run, name, scan->value);
    return 0;
}

static const char *const stack_kinds[] = {"none", "short", "full", NULL};
static const char *const unwind_modes[] = {"auto", "patch", "verify", "fp", "libunwind", NULL};

/* `words` ends with NULL; `wanted` tells them to who used another. */
static int set_word(struct run *run, const struct cli_scan *scan, const char *name,
                    const char *const *words, const char *wanted) {
    while (*words != NULL && strcmp(scan->value, *words) != 0) {
        words++;
    }
    if (*words == NULL) {
        return wrong(scan, wanted);
    }
    set_variable(run, name, scan->value);
    return 0;
}

/* 0; CLI_USAGE with the line printed; -1: --help was asked for. *first: the program's index. */
static int parse(struct run *run, int argc, char **argv, int *first) {
    static const struct cli_option options[] = {{"output", 'o', true, 'o'},
                                                {"every", 'e', true, 'e'},
                                                {"churn", 'c', true, 'c'},
                                                {"top", 'n', true, 'n'},
                                                {"log", 'l', true, 'l'},
                                                {"summary", 0, false, 's'},
                                                {"no-summary", 0, false, 'S'},
                                                {"stacks", 0, true, 'k'},
                                                {"contexts", 0, true, 'C'},
                                                {"unwind", 0, true, 'u'},
                                                {"inject", 0, false, 'i'},
                                                {"help", 'h', false, 'h'},
                                                {0}};
    struct cli_scan scan = cli_scan_start("run", argc, argv, options);
    int status = 0;
    int key;
    while (status == 0 && (key = cli_scan_next(&scan)) > 0) {
        switch (key) {
        case 'o':
            status = set_text(run, &scan, "MEMTRACE_OUTPUT");
            break;
        case 'e':
            status = set_period(run, &scan);
            break;
        case 'c':
            status = set_churn(run, &scan);
            break;
        case 'n':
            status = set_number(run, &scan, "MEMTRACE_TOP", 0);
            break;
        case 'l':
            status = set_text(run, &scan, "MEMTRACE_LOG");
            break;
        case 's':
        case 'S':
            set_variable(run, "MEMTRACE_SUMMARY", key == 's' ? "1" : "0");
            break;
        case 'k':
            status = set_word(run, &scan, "MEMTRACE_STACKS", stack_kinds,
                              "none, short or full is wanted");
            break;
        case 'C':
            status = set_number(run, &scan, "MEMTRACE_CONTEXTS", 1);
            break;
        case 'u':
            status = set_word(run, &scan, "MEMTRACE_UNWIND", unwind_modes,
                              "auto, patch, verify, fp or libunwind is wanted");
            break;
        case 'i':
            set_variable(run, "MEMTRACE_INJECT", "1");
            break;
        case 'h':
            return -1;
        }
    }
    if (status != 0 || key < 0) {
        return CLI_USAGE;
    }
    *first = scan.index;
    return scan.index < argc ? 0 : cli_usage("run", "which program?");
}

/* --- starting --------------------------------------------------------------------------------- */

/* The library beside this command. 0, or CLI_FAILURE with the line printed. */
static int find_library(char path[PATH_MAX]) {
    static const char *const folders[] = {MEMTRACE_LIBDIR, "../lib", ("../" MEMTRACE_MULTIARCH)};
    const char *own = getenv("MEMTRACE_LIBRARY");
    char base[PATH_MAX];
    char candidate[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", base, sizeof base - 1);
    if (own != NULL && own[0] != '\0') {
        return realpath(own, path) != NULL && access(path, R_OK) == 0
                   ? 0
                   : cli_error("MEMTRACE_LIBRARY %s: %s", own, strerror(errno));
    }
    if (length <= 0) {
        return cli_error("cannot tell where this command lies (is /proc mounted?)");
    }
    base[length] = '\0';
    *strrchr(base, '/') = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(candidate, sizeof candidate, "%s/%s/libmemtrace.so", base, folders[i]);
        if (realpath(candidate, path) != NULL && access(path, R_OK) == 0) {
            return 0;
        }
    }
    return cli_error("libmemtrace.so is not at %s/%s; MEMTRACE_LIBRARY can say where it is", base,
                     MEMTRACE_LIBDIR);
}

static int set_preload(struct run *run) {
    char library[PATH_MAX];
    const char *old = getenv("LD_PRELOAD");
    if (find_library(library) != 0) {
        return CLI_FAILURE;
    }
    if (strpbrk(library, ": \t\n") != NULL) {
        return cli_error("%s cannot be preloaded: the loader takes no blank or colon in a path",
                         library);
    }
    if (asprintf(&run->preload, "%s%s%s", library, old != NULL && old[0] != '\0' ? ":" : "",
                 old != NULL ? old : "") < 0) {
        run->preload = NULL;
        return cli_error("out of memory");
    }
    set_variable(run, "LD_PRELOAD", run->preload);
    return 0;
}

/* The runtime takes all of these out of the program's environment again. */
static void name_added(struct run *run) {
    size_t length = 0;
    set_variable(run, "MEMTRACE_ADDED", run->added);
    for (size_t i = 0; i < run->variable_count && length < sizeof run->added; i++) {
        length += (size_t)snprintf(run->added + length, sizeof run->added - length, "%s%s",
                                   i != 0 ? "," : "", run->variables[i].name);
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
static int start(struct run *run, char **argv) {
    int status = target_find(argv[0], run->program);
    const char *obstacle;
    if (status != 0) {
        cli_error("%s: %s", argv[0], status == 127 ? "command not found" : "cannot be executed");
        return status;
    }
    obstacle = target_obstacle(run->program);
    if (obstacle != NULL) {
        cli_error("%s %s: nothing will be recorded", argv[0], obstacle);
        run->recorded = true; /* no second line at the end */
    } else {
        if (set_preload(run) != 0) {
            return CLI_FAILURE;
        }
        snprintf(run->collector, sizeof run->collector, "%ld", (long)getpid());
        set_variable(run, "MEMTRACE_COLLECTOR", run->collector);
        name_added(run);
    }
    run->folders_ns = folders_changed_ns();
    status = child_start(&run->child, run->program, argv, run->variables, run->variable_count);
    if (status != 0) {
        cli_error("cannot run %s: %s", argv[0], strerror(errno));
        return status;
    }
    region_start_ticks(run->child.pid, &run->start_ticks);
    return 0;
}

/* --- while it runs ---------------------------------------------------------------------------- */

static bool attach_in(struct run *run, const char *folder) {
    for (unsigned number = 1; number <= REGION_NUMBERS; number++) {
        char path[512];
        region_path(folder, run->child.pid, run->start_ticks, number, path, sizeof path);
        if (collector_attach(&run->work, path, NULL) == HELD_OK) {
            return true;
        }
    }
    return false;
}

/* The child's region, if it is there by now; after an exec: those that are left, one by one. */
static bool attach(struct run *run) {
    struct region_folders folders;
    size_t count = region_folders(geteuid(), &folders);
    for (size_t i = 0; i < count && !collector_attached(&run->work); i++) {
        run->recorded |= attach_in(run, folders.path[i]);
    }
    return collector_attached(&run->work);
}

static void finish(struct run *run) {
    char *text = collector_finish(&run->work);
    if (text != NULL) {
        collector_write(STDERR_FILENO, text);
    }
    free(text);
}

/* Does what is due; returns the milliseconds until something else is. */
static int tick(struct run *run) {
    if (collector_attached(&run->work) && collector_over(&run->work)) {
        finish(run);
        run->look_ms = FIRST_LOOK_MS;
    }
    if (!collector_attached(&run->work) && !attach(run)) {
        int wait = run->look_ms;
        run->look_ms = wait * 2 < LONGEST_LOOK_MS ? wait * 2 : LONGEST_LOOK_MS;
        return wait;
    }
    return collector_tick(&run->work);
}

static void set_timer(int timer, int ms) {
    struct itimerspec when = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}};
    timerfd_settime(timer, 0, &when, NULL);
}

static void wait_for_end(struct run *run) {
    struct pollfd waits[2] = {{.fd = run->child.signals, .events = POLLIN},
                              {.fd = run->timer, .events = POLLIN}};
    set_timer(run->timer, FIRST_LOOK_MS);
    run->look_ms = FIRST_LOOK_MS;
    child_handle_signals(&run->child);
    while (!run->child.ended) {
        uint64_t expirations;
        if (poll(waits, 2, -1) < 0 && errno != EINTR) {
            break;
        }
        if ((waits[0].revents & POLLIN) != 0) {
            child_handle_signals(&run->child);
        }
        if ((waits[1].revents & POLLIN) != 0 &&
            read(run->timer, &expirations, sizeof expirations) > 0 && !run->child.ended) {
            set_timer(run->timer, tick(run));
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
static void finish_all(struct run *run) {
    const char *mode = getenv("MEMTRACE");
    bool kept = false;
    while (!kept && (collector_attached(&run->work) || attach(run))) { /* after an exec: several */
        char path[sizeof run->work.held.region.path];
        strcpy(path, run->work.held.region.path);
        finish(run);
        kept = access(path, F_OK) == 0; /* it could not be written anywhere */
    }
    /* A region may have come and gone before we looked, as that of `sh -c "exec program"`. */
    if (!run->recorded && folders_changed_ns() == run->folders_ns &&
        (mode == NULL || strcmp(mode, "off") != 0)) {
        cli_error("nothing was recorded of %s", run->program);
    }
}

int cmd_run(int argc, char **argv) {
    static struct run run; /* large */
    int first = 0;
    int status;
    run.work = COLLECTOR_NONE;
    status = parse(&run, argc, argv, &first);
    if (status > 0) {
        return status;
    }
    if (status < 0) {
        fputs(usage, stdout);
        return cli_finish(CLI_OK);
    }
    adopt_killed(note_adopted, NULL, NULL);
    run.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (run.timer < 0) {
        return cli_error("cannot make a timer: %s", strerror(errno));
    }
    status = start(&run, argv + first);
    if (status == 0) {
        wait_for_end(&run);
        finish_all(&run);
        child_reap(&run.child);
        adopt_killed(note_adopted, NULL, NULL); /* its children */
        status = child_imitate(&run.child);
    }
    free(run.preload);
    return status;
}
