/* SPDX-License-Identifier: MIT */
/*
 * run.c: `memtrace run` and `memtrace record`: runs a program with the runtime preloaded. We are
 * its collector while it runs, finish what it leaves when it is gone, and end as it ended. Once a
 * process.
 */
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "cli/child.h"
#include "cli/cli.h"
#include "cli/streaming.h"
#include "cli/target.h"
#include "cli/variables.h"
#include "collect/allocators/alloctold.h"
#include "collect/clock.h"
#include "collect/runwatch.h"
#include "memtrace/emulator.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- where files go --------------------------------------------------------------------------- */

/* The profile's, the recording's, the log's. */
static const struct {
    const char *variable;
    const char *otherwise; /* NULL: only where it is set */
} outputs[] = {{"MEMTRACE_OUTPUT", "memtrace.%e.%p.mtp"},
               {"MEMTRACE_RECORD_OUTPUT", "memtrace.%e.%p.mtr"},
               {"MEMTRACE_LOG", NULL}};
enum { OUTPUTS = sizeof outputs / sizeof outputs[0] };

/* "%e" is the program as typed, not what a link leads to. */
static void name_outputs(struct variables *variables, const char *typed) {
    time_t now = time(NULL);
    for (size_t i = 0; i < OUTPUTS; i++) {
        const char *pattern = variables_get(variables, outputs[i].variable);
        pattern = pattern != NULL && pattern[0] != '\0' ? pattern : outputs[i].otherwise;
        if (pattern != NULL) {
            variables_set_pattern(variables, outputs[i].variable, variables_absolute(pattern),
                                  pathname_base(typed), now);
        }
    }
}

enum { FIRST_LOOK_MS = 2, LONGEST_LOOK_MS = 100 };

struct launch {
    struct variables *variables;
    const char *typed;              /* the program's name */
    struct target_machine emulated; /* name NULL: the program runs here as it is */
    bool is_musl;                   /* the C library of the program that is profiled */
    char program[PATH_MAX];
    char path[PATH_MAX];    /* of its first process's file */
    char library[PATH_MAX]; /* of another machine, or --library; empty: that of this installation */
    struct child child;
    struct runwriter run;
    struct runwatch watch;
    uint64_t id;
    int look_ms; /* no process found yet: when to look again */
};

/* --- starting --------------------------------------------------------------------------------- */

/* Of its own emulator qemu asks nothing to be loaded: what QEMU_SET_ENV sets, its program finds. */
static void set_preload(struct launch *launch) {
    struct variables *variables = launch->variables;
    bool is_emulated = launch->emulated.name != NULL;
    const char *old = getenv("LD_PRELOAD");
    const char *set = getenv("QEMU_SET_ENV");
    char library[PATH_MAX];
    char *preload;
    int status = launch->library[0] != '\0' ? target_preload_of(launch->library, library)
                                            : target_preload(launch->program, library);
    if (status != CLI_OK) {
        cli_end(status);
    }
    variables_set(variables, "MEMTRACE_LIBRARIES", /* for what the program starts */
                  target_libraries(is_emulated ? launch->emulated.elf : target_this_machine().elf,
                                   launch->is_musl, library));
    preload = job_text("%s%s%s", library, old != NULL && old[0] != '\0' ? ":" : "",
                       old != NULL ? old : "");
    if (!is_emulated) {
        variables_set(variables, "LD_PRELOAD", preload);
        return;
    }
    if (strchr(preload, ',') != NULL) {
        job_fail("%s cannot be preloaded in an emulator: qemu takes no comma in a path", preload);
    }
    variables_set(variables, "QEMU_SET_ENV",
                  job_text("%s%sLD_PRELOAD=%s", set != NULL ? set : "",
                           set != NULL && set[0] != '\0' ? "," : "", preload));
}

/* The runtime takes all of these out of the program's environment again: an even number of them,
 * since what the kernel put behind the environment consists of pairs (settings.c). */
static void name_added(const struct launch *launch) {
    struct variables *variables = launch->variables;
    const char *preload = getenv("LD_PRELOAD");
    struct job_printing *names = job_print();
    size_t stay = preload != NULL && preload[0] != '\0' ? 1 : 0; /* LD_PRELOAD is only shortened */
    size_t unlisted = launch->emulated.name != NULL ? 1 : 0;     /* LD_PRELOAD is set by qemu */
    variables_set(variables, "MEMTRACE_ADDED", "");
    if ((variables->count + unlisted - stay) % 2 != 0) {
        variables_set(variables, "MEMTRACE_EVEN", "");
    }
    for (size_t i = 0; i < variables->count; i++) {
        fprintf(names->out, "%s%s", i != 0 ? "," : "", variables->list[i].name);
    }
    fputs(unlisted != 0 ? ",LD_PRELOAD" : "", names->out);
    variables_set(variables, "MEMTRACE_ADDED", job_printed(names));
}

static void name_run(struct launch *launch) {
    struct stat namespace = {0}; /* of pids, where "MEMTRACE_COLLECTOR" means us */
    if (stat("/proc/self/ns/pid", &namespace) != 0) {
        namespace.st_ino = 0; /* not known */
    }
    while (launch->id == 0) {
        if (getrandom(&launch->id, sizeof launch->id, 0) != sizeof launch->id) {
            launch->id = (uint64_t)getpid();
        }
        launch->id &= INT64_MAX; /* what any reader of a decimal number takes */
    }
    variables_set(launch->variables, "MEMTRACE_RUN",
                  job_text("%" PRIu64 ".%" PRIu64, launch->id, (uint64_t) namespace.st_ino));
    variables_set_number(launch->variables, "MEMTRACE_COLLECTOR", (uint64_t)getpid(), "");
    if (variables_get(launch->variables, "MEMTRACE_CHILDREN") == NULL) {
        variables_set(launch->variables, "MEMTRACE_CHILDREN", "all");
    }
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
 * Why neither can be; NULL: one can. */
static const char *choose_emulator(struct launch *launch, char **argv, const char *own) {
    const struct target_machine here = target_this_machine();
    const char *program = memtrace_emulated_program(argv);
    const char *obstacle;
    char problem[TARGET_PROBLEM];
    char ignored[TARGET_PROBLEM];
    launch->typed = program != NULL ? program : argv[0];
    launch->is_musl = target_is_of_musl(launch->typed);
    if (target_library(&launch->emulated, launch->is_musl, own, launch->library, problem) == 0) {
        obstacle = target_obstacle(launch->typed, launch->emulated.elf);
        if (obstacle == NULL) {
            cli_error("%s emulates %s, a program for %s: that is profiled, with %s", argv[0],
                      launch->typed, launch->emulated.name, launch->library);
        }
        return obstacle;
    }
    launch->typed = argv[0];
    launch->is_musl = target_is_of_musl(launch->program);
    launch->library[0] = '\0';
    if (own != NULL && target_library(&here, false, own, launch->library, ignored) != 0) {
        job_fail("%s", problem);
    }
    launch->emulated.name = NULL;
    obstacle = target_obstacle(launch->program, here.elf);
    cli_error(obstacle == NULL ? "%s: the emulator itself is profiled, not its program: %s"
                               : "%s: its program cannot be profiled: %s",
              argv[0], problem);
    return obstacle;
}

/* Which library is loaded, and into what: not always the program that the user started. Why nothing
 * can be recorded; NULL: it can. */
static const char *choose_library(struct launch *launch, char **argv) {
    const struct target_machine here = target_this_machine();
    struct target_machine *emulated = &launch->emulated;
    const char *own = launch->variables->library;
    char reason[TARGET_PROBLEM];
    *emulated = target_emulated(launch->program);
    if (own == NULL && emulated->name != NULL) {
        own = getenv("MEMTRACE_LIBRARY");
    }
    launch->is_musl = target_is_of_musl(launch->program);
    if (emulated->is_by_name) {
        return choose_emulator(launch, argv, own);
    }
    if (emulated->name == NULL) {
        if (own != NULL && target_library(&here, false, own, launch->library, reason) != 0) {
            job_fail("%s", reason);
        }
        return target_obstacle(launch->program, here.elf);
    }
    if (target_library(emulated, launch->is_musl, own, launch->library, reason) != 0) {
        return job_text("is a program for %s, and %s", emulated->name, reason);
    }
    cli_error("%s is a program for %s, which an emulator runs: profiled with %s", argv[0],
              emulated->name, launch->library);
    return target_obstacle(launch->program, emulated->elf);
}

/* 0, or the exit status with the line printed. */
static int launch_start(struct launch *launch, char **argv) {
    int status = target_find(argv[0], launch->program);
    const char *obstacle;
    int reason;
    if (status != 0) {
        cli_error("%s: %s", argv[0], status == 127 ? "command not found" : "cannot be executed");
        return status;
    }
    launch->typed = argv[0];
    obstacle = choose_library(launch, argv);
    if (obstacle != NULL) {
        return run_bare(launch, argv, obstacle);
    }
    set_preload(launch);
    name_outputs(launch->variables, launch->typed);
    name_run(launch);
    name_added(launch);
    status = child_start(&launch->child, launch->program, argv, launch->variables->list,
                         launch->variables->count);
    reason = errno;
    if (status != 0 && reason == ENOEXEC && launch->emulated.name != NULL &&
        !launch->emulated.is_by_name) { /* an ELF file that the kernel does not know */
        cli_error("cannot run %s: the kernel knows no emulator for %s (binfmt_misc): memtrace "
                  "run -- qemu-%s %s",
                  argv[0], launch->emulated.name, launch->emulated.qemu, argv[0]);
    } else if (status != 0) {
        cli_error("cannot run %s: %s", argv[0], strerror(reason));
    }
    return status;
}

/* --- its page: --serve ------------------------------------------------------------------------ */

/* The server is a process of its own (`memtrace serve PID`), so that what it does costs the
 * collector nothing, and the page stays when the program is gone; it ends with us, however we end.
 * stdout is the program's, so the address goes to stderr. -1: it was said why not. */
static pid_t serving_start(pid_t program) {
    char number[24];
    pid_t parent = getpid();
    pid_t server;
    snprintf(number, sizeof number, "%ld", (long)program);
    server = fork();
    if (server == 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent) {
        child_become((char *[]){"memtrace", "serve", number, NULL}, STDERR_FILENO);
    }
    if (server == 0) {
        _exit(CLI_FAILURE);
    }
    if (server < 0) {
        cli_error("cannot start the server of the page: %m");
    }
    return server;
}

/* Stays until the user ends it (Ctrl-C), or it ends itself. The signals are blocked. */
static void serving_wait(pid_t server) {
    sigset_t signals = cli_endings();
    sigaddset(&signals, SIGCHLD);
    if (waitpid(server, NULL, WNOHANG) == server) {
        return;
    }
    fputs("memtrace: the page stays until Ctrl-C\n", stderr);
    for (;;) {
        int number = sigwaitinfo(&signals, NULL);
        if (number != SIGCHLD && number > 0) {
            kill(server, SIGTERM); /* a second time it ends at once */
        }
        if (waitpid(server, NULL, WNOHANG) == server) {
            return;
        }
    }
}

/* --- while it runs ---------------------------------------------------------------------------- */

/* Does what is due; returns the milliseconds until something else is. */
static int launch_tick(struct launch *launch) {
    int due = runwatch_tick(&launch->watch);
    int wait = launch->look_ms;
    streaming_tick();
    if (launch->watch.found_any) {
        return due;
    }
    launch->look_ms = wait * 2 < LONGEST_LOOK_MS ? wait * 2 : LONGEST_LOOK_MS;
    return wait;
}

static void launch_wait(struct launch *launch) {
    struct pollfd wait = {.fd = launch->child.signals, .events = POLLIN};
    uint64_t due_ns = clock_now_ns() + FIRST_LOOK_MS * MS;
    launch->look_ms = FIRST_LOOK_MS;
    child_handle_signals(&launch->child);
    while (!launch->child.ended) {
        uint64_t now_ns = clock_now_ns();
        if (now_ns >= due_ns) {
            uint64_t pause_ns = (uint64_t)launch_tick(launch) * MS;
            due_ns =
                clock_now_ns() + pause_ns; /* from its end on: a slow one leaves a pause, too */
        } else if (poll(&wait, 1, (int)((due_ns - now_ns + MS - 1) / MS)) < 0 && errno != EINTR) {
            break;
        }
        child_handle_signals(&launch->child);
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
    int status;
    pid_t server = -1;
    streaming_begin(launch->variables);
    status = launch_start(launch, argv);
    if (status != CLI_OK) {
        return status;
    }
    allow_descriptors();
    child_expand(variables_pattern(launch->variables, outputs[is_recording].variable),
                 launch->child.pid, launch->path);
    if (runwriter_begin(&launch->run, launch->id, launch->path, is_recording, argv) != 0) {
        cli_error("out of memory");
    }
    launch->run.pid = launch->child.pid;
    launch->run.names_allocators = variables_get(launch->variables, "MEMTRACE_ALLOC") != NULL;
    launch->run.keeps_small = is_set(launch, "MEMTRACE_KEEP_SMALL");
    launch->watch = runwatch_begin(&launch->run);
    if (launch->variables->serves) {
        server = serving_start(launch->child.pid);
    }
    launch_wait(launch);
    finish_all(launch);
    streaming_end();
    if (server > 0 && launch->child.asked_to_end) {
        kill(server, SIGTERM);
        waitpid(server, NULL, 0);
    } else if (server > 0) {
        serving_wait(server);
    }
    return child_imitate(&launch->child);
}

static int launch_command(const struct command *command, int argc, char **argv) {
    struct launch *launch = job_alloc(sizeof *launch);
    int status;
    launch->variables = job_alloc(sizeof *launch->variables);
    if (command == &record_command) {
        variables_set(launch->variables, "MEMTRACE_RECORD", "1");
    }
    cli_read(command, &argc, &argv, launch->variables);
    if (argc == 0) {
        cli_usage(command->name, "a program is needed");
    }
    status = run_program(launch, argv);
    runwriter_free(&launch->run);
    return status;
}

static int run_run(int argc, char **argv) {
    return launch_command(&run_command, argc, argv);
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
    return launch_command(&record_command, argc, argv);
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
