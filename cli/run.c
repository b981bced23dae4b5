/* SPDX-License-Identifier: MIT */
/*
 * run.c: `memtrace run` and `memtrace record`: runs a program with the runtime preloaded. We are
 * its collector while it runs, finish what it leaves when it is gone, and end as it ended. Once a
 * process.
 */
#include "analyze/base/pathname.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/emulated.h"
#include "cli/libraries.h"
#include "cli/serving.h"
#include "cli/streaming.h"
#include "cli/target.h"
#include "cli/variables.h"
#include "collect/allocators/alloctold.h"
#include "collect/runwatch.h"
#include "memtrace/emulator.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- where files go --------------------------------------------------------------------------- */

enum { LAUNCHFILES = 3 };
struct launchfiles {
    char *patterns[LAUNCHFILES]; /* profile, recording, log; NULL: not set */
    char *path;
};

static const struct {
    const char *variable;
    const char *otherwise; /* NULL: only where it is set */
} known[LAUNCHFILES] = {{"MEMTRACE_OUTPUT", "memtrace.%e.%p.mtp"},
                        {"MEMTRACE_RECORD_OUTPUT", "memtrace.%e.%p.mtr"},
                        {"MEMTRACE_LOG", NULL}};

/* A percent sign has no meaning in the name of a folder or a program. */
static void put_quoted(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        fputs(*text == '%' ? "%" : "", out);
        fputc(*text, out);
    }
}

/* "%e" is the program as typed, not what a link leads to. "%p" stays: there is no pid yet. */
static void put_pattern(FILE *out, const char *pattern, const char *typed) {
    for (; *pattern != '\0'; pattern++) {
        char place = *pattern == '%' ? pattern[1] : '\0';
        if (place == 'e') {
            put_quoted(out, pathname_base(typed));
        } else if (place == 't') {
            fprintf(out, "%lld", (long long)time(NULL));
        } else if (place == 'n') {
            fputc('0', out);
        } else {
            fputc(*pattern, out);
            if (place == '%') { /* two are one */
                fputc(place, out);
            }
        }
        pattern += place == 'e' || place == 't' || place == 'n' || place == '%';
    }
}

/* NULL: out of memory. */
static char *absolute(const char *pattern, const char *typed) {
    char *folder = pattern[0] != '/' ? getcwd(NULL, 0) : NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out != NULL) {
        put_quoted(out, folder != NULL && strcmp(folder, "/") != 0 ? folder : "");
        fputs(folder != NULL ? "/" : "", out);
        put_pattern(out, pattern, typed);
        if (fclose(out) != 0) {
            free(text);
            text = NULL;
        }
    }
    free(folder);
    return text;
}

static int launchfiles_name(struct launchfiles *files, struct variables *variables,
                            const char *typed) {
    for (size_t i = 0; i < LAUNCHFILES; i++) {
        const char *pattern = variables_get(variables, known[i].variable);
        pattern = pattern != NULL && pattern[0] != '\0' ? pattern : known[i].otherwise;
        if (pattern == NULL) {
            continue;
        }
        files->patterns[i] = absolute(pattern, typed);
        if (files->patterns[i] == NULL) {
            return cli_error("out of memory");
        }
        variables_set_pattern(variables, known[i].variable, files->patterns[i]);
    }
    return 0;
}

static const char *launchfiles_path(struct launchfiles *files, bool is_recording, pid_t pid) {
    const char *pattern = files->patterns[is_recording];
    char *to;
    free(files->path);
    files->path = pattern != NULL ? child_expand(pattern, pid) : NULL;
    if (files->path == NULL) {
        return "";
    }
    to = files->path;
    for (const char *at = files->path; *at != '\0'; at++) {
        at += at[0] == '%' && at[1] == '%';
        *to++ = *at;
    }
    *to = '\0';
    return files->path;
}

static void launchfiles_free(struct launchfiles *files) {
    for (size_t i = 0; i < LAUNCHFILES; i++) {
        free(files->patterns[i]);
    }
    free(files->path);
    *files = (struct launchfiles){0};
}

enum { FIRST_LOOK_MS = 2, LONGEST_LOOK_MS = 100 };

struct launch {
    struct variables *variables;
    char added[1024];
    char run_text[48]; /* MEMTRACE_RUN */
    char *preload;
    const char *typed;        /* the program's name */
    struct emulated emulated; /* machine NULL: the program runs here as it is */
    bool is_musl;             /* the C library of the program that is profiled */
    char *qemu_environment;
    char *libraries;
    struct launchfiles files;
    char program[PATH_MAX];
    char library[PATH_MAX]; /* of another machine, or --library; empty: that of this installation */
    struct child child;
    struct runwriter run;
    struct runwatch watch;
    uint64_t id;
    int look_ms; /* no process found yet: when to look again */
    int timer;
};

/* --- starting --------------------------------------------------------------------------------- */

/* Of its own emulator qemu asks nothing to be loaded: what it sets, its program finds. */
static int set_emulated_preload(struct launch *launch) {
    launch->qemu_environment = emulated_preload(launch->preload, getenv("QEMU_SET_ENV"));
    if (launch->qemu_environment == NULL) {
        return cli_error("%s cannot be preloaded in an emulator: qemu takes no comma in a path",
                         launch->preload);
    }
    variables_set(launch->variables, "QEMU_SET_ENV", launch->qemu_environment);
    return 0;
}

/* For what the program starts. */
static int set_libraries(struct launch *launch, const char *library) {
    struct libraries_own own = {.is_musl = launch->is_musl, .preload = library};
    own.machine = launch->emulated.machine != NULL ? launch->emulated.elf_machine
                                                   : emulated_not().elf_machine;
    launch->libraries = libraries_text(&own);
    if (launch->libraries == NULL) {
        return cli_error("out of memory");
    }
    variables_set(launch->variables, "MEMTRACE_LIBRARIES", launch->libraries);
    return 0;
}

static int set_preload(struct launch *launch) {
    char library[PATH_MAX];
    const char *old = getenv("LD_PRELOAD");
    if ((launch->library[0] != '\0' ? preload_path_of(launch->library, library)
                                    : preload_path(launch->program, library)) != 0 ||
        set_libraries(launch, library) != 0) {
        return CLI_FAILURE;
    }
    if (asprintf(&launch->preload, "%s%s%s", library, old != NULL && old[0] != '\0' ? ":" : "",
                 old != NULL ? old : "") < 0) {
        launch->preload = NULL;
        return cli_error("out of memory");
    }
    if (launch->emulated.machine != NULL) {
        return set_emulated_preload(launch);
    }
    variables_set(launch->variables, "LD_PRELOAD", launch->preload);
    return 0;
}

/* The runtime takes all of these out of the program's environment again: an even number of them,
 * since what the kernel put behind the environment consists of pairs (settings.c). */
static void name_added(struct launch *launch) {
    const char *preload = getenv("LD_PRELOAD");
    size_t length = 0;
    size_t stay = preload != NULL && preload[0] != '\0' ? 1 : 0; /* LD_PRELOAD is only shortened */
    size_t unlisted = launch->emulated.machine != NULL ? 1 : 0;  /* LD_PRELOAD is set by qemu */
    variables_set(launch->variables, "MEMTRACE_ADDED", launch->added);
    if ((launch->variables->count + unlisted - stay) % 2 != 0) {
        variables_set(launch->variables, "MEMTRACE_EVEN", "");
    }
    for (size_t i = 0; i < launch->variables->count && length < sizeof launch->added; i++) {
        length += (size_t)snprintf(launch->added + length, sizeof launch->added - length, "%s%s",
                                   i != 0 ? "," : "", launch->variables->list[i].name);
    }
    if (unlisted != 0 && length < sizeof launch->added) {
        snprintf(launch->added + length, sizeof launch->added - length, ",LD_PRELOAD");
    }
}

/* The inode of our namespace of pids, where "MEMTRACE_COLLECTOR" means us; 0: not known. */
static uint64_t pid_namespace(void) {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

static void name_run(struct launch *launch) {
    while (launch->id == 0) {
        if (getrandom(&launch->id, sizeof launch->id, 0) != sizeof launch->id) {
            launch->id = (uint64_t)getpid();
        }
        launch->id &= INT64_MAX; /* what any reader of a decimal number takes */
    }
    snprintf(launch->run_text, sizeof launch->run_text, "%" PRIu64 ".%" PRIu64, launch->id,
             pid_namespace());
    variables_set(launch->variables, "MEMTRACE_RUN", launch->run_text);
    variables_set_number(launch->variables, "MEMTRACE_COLLECTOR", (uint64_t)getpid(), "");
    if (variables_get(launch->variables, "MEMTRACE_CHILDREN") == NULL) {
        variables_set(launch->variables, "MEMTRACE_CHILDREN", "all");
    }
}

/* What the program needs to be recorded. 0, or CLI_FAILURE with the line printed. */
static int prepare(struct launch *launch, const char *typed) {
    if (set_preload(launch) != 0 ||
        launchfiles_name(&launch->files, launch->variables, typed) != 0) {
        return CLI_FAILURE;
    }
    name_run(launch);
    name_added(launch);
    return 0;
}

/* What cannot be recorded takes our place. Returns only if it cannot be run either. */
static int run_bare(const struct launch *launch, char **argv, const char *obstacle) {
    int reason;
    cli_error("%s %s: nothing will be recorded", launch->typed, obstacle);
    reason = execute_program(launch->program, argv);
    cli_error("cannot run %s: %s", argv[0], strerror(reason));
    return execute_status(reason);
}

/* Of an emulator: its program is profiled, or itself, with the library that was named or found.
 * `obstacle`: why neither can be; NULL: one can. 0, or CLI_FAILURE with the line printed. */
static int choose_emulator(struct launch *launch, char **argv, const char *own,
                           const char **obstacle) {
    const struct emulated here = emulated_not();
    const char *program = memtrace_emulated_program(argv);
    char problem[EMULATED_PROBLEM];
    char ignored[EMULATED_PROBLEM];
    launch->typed = program != NULL ? program : argv[0];
    launch->is_musl = target_is_of_musl(launch->typed);
    if (emulated_library(&launch->emulated, launch->is_musl, own, launch->library, problem) == 0) {
        *obstacle = target_obstacle_of(launch->typed, launch->emulated.elf_machine);
        if (*obstacle == NULL) {
            cli_error("%s emulates %s, a program for %s: that is profiled, with %s", argv[0],
                      launch->typed, launch->emulated.machine, launch->library);
        }
        return CLI_OK;
    }
    launch->typed = argv[0];
    launch->is_musl = target_is_of_musl(launch->program);
    launch->library[0] = '\0';
    if (own != NULL && emulated_library(&here, false, own, launch->library, ignored) != 0) {
        return cli_error("%s", problem);
    }
    launch->emulated.machine = NULL;
    *obstacle = target_obstacle(launch->program);
    cli_error(*obstacle == NULL ? "%s: the emulator itself is profiled, not its program: %s"
                                : "%s: its program cannot be profiled: %s",
              argv[0], problem);
    return CLI_OK;
}

/* Which library is loaded, and into what: not always the program that the user started. `obstacle`:
 * why nothing can be recorded; NULL: it can. 0, or CLI_FAILURE with the line printed. */
static int choose_library(struct launch *launch, char **argv, const char **obstacle) {
    static char problem[EMULATED_PROBLEM + 64];
    char reason[EMULATED_PROBLEM];
    const struct emulated here = emulated_not();
    struct emulated *emulated = &launch->emulated;
    const char *own = launch->variables->library;
    *emulated = emulated_find(launch->program);
    *obstacle = NULL;
    if (own == NULL && emulated->machine != NULL) {
        own = getenv("MEMTRACE_LIBRARY");
    }
    launch->is_musl = target_is_of_musl(launch->program);
    if (emulated->is_by_name) {
        return choose_emulator(launch, argv, own, obstacle);
    }
    if (emulated->machine == NULL) {
        if (own != NULL && emulated_library(&here, false, own, launch->library, reason) != 0) {
            return cli_error("%s", reason);
        }
        *obstacle = target_obstacle(launch->program);
    } else if (emulated_library(emulated, launch->is_musl, own, launch->library, reason) == 0) {
        cli_error("%s is a program for %s, which an emulator runs: profiled with %s", argv[0],
                  emulated->machine, launch->library);
        *obstacle = target_obstacle_of(launch->program, emulated->elf_machine);
    } else {
        snprintf(problem, sizeof problem, "is a program for %s, and %s", emulated->machine, reason);
        *obstacle = problem;
    }
    return CLI_OK;
}

/* An ELF file that the kernel does not know. */
static int tell_not_started(const struct launch *launch, const char *typed) {
    int reason = errno;
    if (reason == ENOEXEC && launch->emulated.machine != NULL && !launch->emulated.is_by_name) {
        return cli_error(
            "cannot run %s: the kernel knows no emulator for %s (binfmt_misc): memtrace "
            "run -- qemu-%s %s",
            typed, launch->emulated.machine, launch->emulated.qemu, typed);
    }
    return cli_error("cannot run %s: %s", typed, strerror(reason));
}

/* 0, or the exit status with the line printed. */
static int start(struct launch *launch, char **argv) {
    int status = target_find(argv[0], launch->program);
    const char *obstacle;
    if (status != 0) {
        cli_error("%s: %s", argv[0], status == 127 ? "command not found" : "cannot be executed");
        return status;
    }
    launch->typed = argv[0];
    if (choose_library(launch, argv, &obstacle) != CLI_OK) {
        return CLI_FAILURE;
    }
    if (obstacle != NULL) {
        return run_bare(launch, argv, obstacle);
    }
    if (prepare(launch, launch->typed) != 0) {
        return CLI_FAILURE;
    }
    status = child_start(&launch->child, launch->program, argv, launch->variables->list,
                         launch->variables->count);
    if (status != 0) {
        tell_not_started(launch, argv[0]);
    }
    return status;
}

/* --- while it runs ---------------------------------------------------------------------------- */

/* Does what is due; returns the milliseconds until something else is. */
static int tick(struct launch *launch) {
    int due = runwatch_tick(&launch->watch);
    int wait = launch->look_ms;
    streaming_tick();
    if (launch->watch.found_any) {
        return due;
    }
    launch->look_ms = wait * 2 < LONGEST_LOOK_MS ? wait * 2 : LONGEST_LOOK_MS;
    return wait;
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

/* --- the end ---------------------------------------------------------------------------------- */

static void tell_of_run(struct launch *launch) {
    struct runwriter_exit how = {.signaled = WIFSIGNALED(launch->child.status),
                                 .number = WIFSIGNALED(launch->child.status)
                                               ? WTERMSIG(launch->child.status)
                                               : WEXITSTATUS(launch->child.status)};
    const char *summary = variables_get(launch->variables, "MEMTRACE_SUMMARY");
    struct error error = {""};
    char *text;
    if (runwriter_end(&launch->run, &how, &error) != 0) {
        cli_error("%s", error.message);
    }
    text = summary == NULL || strcmp(summary, "0") != 0 ? runwriter_summary(&launch->run) : NULL;
    if (text != NULL) {
        collector_write(STDERR_FILENO, text);
    }
    free(text);
}

/* One line, whatever the number. */
static void tell_not_followed(const struct runwriter *run) {
    static const char *const reasons[RUNWRITER_NOT_FOLLOWED] = {
        "linked with another C library, for which no library of MemTrace's is there",
        "linked statically, without MemTrace in it",
        "for another machine, for which no library of MemTrace's is there",
        "with a sanitizer's library, which must come first",
        "where they cannot open MemTrace's library (another root, another user)"};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    uint64_t sum = 0;
    for (size_t i = 0; out != NULL && i < RUNWRITER_NOT_FOLLOWED; i++) {
        uint64_t count = run->not_followed[i];
        if (count != 0) {
            fprintf(out, "%s%" PRIu64 " %s", sum != 0 ? "; " : "", count, reasons[i]);
        }
        sum += count;
    }
    if (out != NULL && fclose(out) == 0 && sum != 0) {
        cli_error("programs that it started ran without being profiled: %s%s",
                  run->not_followed_more ? "at least " : "", text);
    }
    free(text);
}

/* The child is a zombie here, so that nobody else has its pid and other commands can see that its
 * parent will finish the region. */
static void finish_all(struct launch *launch) {
    const char *mode = getenv("MEMTRACE");
    size_t left = runwatch_end(&launch->watch);
    child_reap(&launch->child);
    if (runwriter_has_several(&launch->run)) {
        tell_of_run(launch);
    }
    runwatch_let_go(&launch->watch);
    if (left != 0) {
        cli_error("%zu of its processes %s on; what %s will be beside it or in its folder", left,
                  left == 1 ? "goes" : "go", left == 1 ? "it leaves" : "they leave");
    }
    alloctold_forget(launch->id);
    tell_not_followed(&launch->run);
    if (!launch->watch.found_any && (mode == NULL || strcmp(mode, "off") != 0)) {
        cli_error("nothing was recorded of %s", launch->program);
    }
}

static bool is_set(const struct launch *launch, const char *variable) {
    const char *value = variables_get(launch->variables, variable);
    return value != NULL && strcmp(value, "1") == 0;
}

/* Each process that runs takes some descriptors of ours. Not of the program's: it has started. */
static void allow_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The variables are set: starts the program and stays until its end. */
static int run_program(struct launch *launch, char **argv) {
    bool is_recording = is_set(launch, "MEMTRACE_RECORD");
    int status = streaming_begin(launch->variables);
    pid_t server = -1;
    if (status == CLI_OK) {
        status = start(launch, argv);
    }
    if (status != CLI_OK) {
        return status;
    }
    allow_descriptors();
    if (runwriter_begin(&launch->run, launch->id,
                        launchfiles_path(&launch->files, is_recording, launch->child.pid),
                        is_recording, argv) != 0) {
        cli_error("out of memory");
    }
    launch->run.pid = launch->child.pid;
    launch->run.names_allocators = variables_get(launch->variables, "MEMTRACE_ALLOC") != NULL;
    launch->run.keeps_small = is_set(launch, "MEMTRACE_KEEP_SMALL");
    launch->watch = runwatch_begin(&launch->run);
    if (launch->variables->serves) {
        server = serving_start(launch->child.pid);
    }
    wait_for_end(launch);
    finish_all(launch);
    streaming_end();
    if (server > 0 && launch->child.asked_to_end) {
        serving_end(server);
    } else if (server > 0) {
        serving_wait(server);
    }
    return child_imitate(&launch->child);
}

static int run(struct variables *variables, char **argv) {
    static struct launch launch; /* large */
    int status;
    launch.variables = variables;
    launch.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (launch.timer < 0) {
        return cli_error("cannot make a timer: %s", strerror(errno));
    }
    status = run_program(&launch, argv);
    runwriter_free(&launch.run);
    launchfiles_free(&launch.files);
    free(launch.preload);
    free(launch.qemu_environment);
    free(launch.libraries);
    return status;
}

static int launch_command(const struct command *command, struct variables *variables, int argc,
                          char **argv) {
    int status = cli_read(command, &argc, &argv, variables);
    if (status == CLI_OK && argc == 0) {
        status = cli_usage(command->name, "a program is needed");
    }
    return status == CLI_OK ? run(variables, argv) : status;
}

static int run_run(int argc, char **argv) {
    static struct variables variables;
    return launch_command(&run_command, &variables, argc, argv);
}

const struct command run_command = {
    .name = "run",
    .run = run_run,
    .summary = "run a program and profile it",
    .usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
    .about = "Runs PROGRAM under the profiler and leaves a profile file. The exit status is "
             "PROGRAM's.",
    .options = variables_of_profiles,
    .more = variables_print_more,
    .takes_program = true,
};

static int run_record(int argc, char **argv) {
    static struct variables variables;
    variables_set(&variables, "MEMTRACE_RECORD", "1");
    return launch_command(&record_command, &variables, argc, argv);
}

const struct command record_command = {
    .name = "record",
    .run = run_record,
    .summary = "run a program and record every event",
    .usage = "[OPTION]... [--] PROGRAM [ARGUMENT]...",
    .about = "Runs PROGRAM and writes every allocation, reallocation and free into a recording. "
             "The exit status is PROGRAM's.",
    .options = variables_of_recordings,
    .more = variables_print_more,
    .takes_program = true,
};
