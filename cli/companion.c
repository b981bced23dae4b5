/* SPDX-License-Identifier: MIT */
/*
 * companion.c: see companion.h. And `memtrace companion REGION`: the collector of a program that
 * runs without `memtrace run`. The runtime starts it (forked twice, so that the program never sees
 * it as a child). It stays until the program is gone or has replaced itself by exec, and finishes
 * the profile only if the program did not do so itself.
 */
#include "cli/companion.h"

#include "analyze/base/pathname.h"
#include "analyze/symbol/debugfile.h"
#include "cli/cli.h"
#include "cli/streaming.h"
#include "collect/collector.h"
#include "collect/programask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ATTACH_TRIES = 200, CLAIM_TRIES = 300, TRY_MS = 10, LEAVING_MS = 200, LATE_MS = 300 };

/* Whether the process still exists after that time. */
static bool process_is_there(int process, int ms) {
    struct pollfd ended = {.fd = process, .events = POLLIN};
    return poll(&ended, 1, ms) == 0 || (ended.revents & POLLIN) == 0;
}

/* Neither of the terminal's job, nor in a folder that it would keep busy, nor ended by what becomes
 * of its output. */
static void leave_session(void) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    setsid();
    if (chdir("/") != 0) {
        return; /* it only keeps a folder busy */
    }
}

void companion_shed(char **argv) {
    enum { MOST = 8 };
    int null = open("/dev/null", O_RDWR);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        if (fcntl(STDERR_FILENO, F_GETFD) < 0) {
            dup2(null, STDERR_FILENO);
        }
    }
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
    if (getenv("LD_PRELOAD") != NULL) {
        char self[] = "memtrace";
        char *again[MOST + 2] = {self};
        for (size_t i = 0; i < MOST && argv[i] != NULL; i++) {
            again[i + 1] = argv[i];
        }
        unsetenv("LD_PRELOAD");
        execv("/proc/self/exe", again);
    }
}

/* ---- What the runtime starts ---- */

/* The region may not be whole yet, or another command may be looking at it. */
static enum claim_status companion_attach(struct collector *work, const char *path,
                                          struct error *error) {
    enum claim_status status;
    for (int tries = 0;; tries++) {
        status = collector_attach(work, path, NULL, error);
        if ((status != CLAIM_BUSY && status != CLAIM_EMPTY) || tries == ATTACH_TRIES) {
            return status;
        }
        poll(NULL, 0, TRY_MS);
    }
}

/* Waits; whether the process still exists afterwards. */
static bool wait_alive(const struct collector *work, int process, int ms) {
    if (process >= 0) {
        return process_is_there(process, ms);
    }
    poll(NULL, 0, ms);
    return claim_is_alive(&work->claim);
}

/* The runtime has left a program that goes on (`memtrace detach`), not one that is just ending. Who
 * was about to write down an event then has done so. The region is for us to take away. */
static bool has_left(const struct collector *work, int process) {
    return work->record != NULL &&
           claim_load_u32(&work->claim.header->state) == MEMTRACE_STATE_ENDED &&
           wait_alive(work, process, LEAVING_MS);
}

/* It was started for a recording that began in the middle of the run (collect/programask.h), which
 * is over. */
static bool has_recorded(const struct collector *work) {
    return work->record == NULL && collector_only_records(work);
}

static int run_companion(int argc, char **argv) {
    sigset_t none;
    struct collector work = COLLECTOR_NONE;
    struct error error = {""};
    enum claim_status status;
    int process;
    if (argc < 2 || argc > 3 || argv[1][0] != '/') {
        cli_usage("companion", "started by the runtime, with the path of a profile region");
    }
    companion_shed(argv);
    for (int number = 1; number <= SIGRTMAX; number++) { /* nothing is kept of its settings */
        signal(number, SIG_DFL);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    leave_session();
    if (argc == 3) { /* of a run in another namespace, whose own collector may see it, too */
        poll(NULL, 0, LATE_MS);
    }
    status = companion_attach(&work, argv[1], &error);
    if (status != CLAIM_OK) {
        return status == CLAIM_FAILED ? cli_error("no periodic reports: %s", error.message)
                                      : CLI_OK;
    }
    process = (int)syscall(SYS_pidfd_open, work.claim.region.pid, 0);
    while (!collector_over(&work) && wait_alive(&work, process, collector_tick(&work)) &&
           !has_left(&work, process) && !has_recorded(&work)) {
    }
    if (wait_alive(&work, process, 0) && has_recorded(&work)) {
        __atomic_store_n(&work.claim.header->collector_pid, 0, __ATOMIC_RELEASE);
        collector_detach(&work);
    } else if (work.record == NULL && !claim_named(&work.claim) &&
               claim_load_u32(&work.claim.header->state) == MEMTRACE_STATE_ENDED) {
        collector_detach(&work); /* the runtime has done it */
    } else {                     /* it died without finishing, or is now another one */
        char *text = collector_finish(&work, true);
        if (text != NULL) {
            collector_write(STDERR_FILENO, text);
        }
        free(text);
    }
    return CLI_OK;
}

const struct command companion_command = {.name = "companion", .run = run_companion};

/* ---- For a program that was attached to from outside ---- */

int companion_path(const char *pattern, pid_t pid, char path[PATH_MAX], struct error *error) {
    char folder[PATH_MAX];
    char program[PATH_MAX];
    char link[64];
    ssize_t read;
    size_t length = 0;
    if (getcwd(folder, sizeof folder) == NULL) {
        return error_set(error, "cannot tell where this is: %s", strerror(errno));
    }
    if (pattern[0] != '/') {
        length = (size_t)snprintf(path, PATH_MAX, "%s/", folder);
    }
    snprintf(link, sizeof link, "/proc/%ld/exe", (long)pid);
    read = readlink(link, program, PATH_MAX - 1);
    program[read > 0 ? read : 0] = '\0';
    if (pathname_ends_in(program, " (deleted)")) {
        program[strlen(program) - sizeof " (deleted)" + 1] = '\0';
    }
    if (length < PATH_MAX) {
        recordask_expand(pattern, pid, pathname_base(program), 0, time(NULL), path + length,
                         PATH_MAX - length);
    }
    if (strlen(path) > 1000) {
        return error_set(error, "the name of the profile is too long");
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(pathname_base(path) - path), path);
    return access(folder, W_OK) == 0 ? 0 : error_set(error, "%s: %s", folder, strerror(errno));
}

/* Nothing of the command's is kept: not its pipes, its terminal's job, its folder. */
static void leave_command(void) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++) {
        dup2(null, fd);
    }
    signal(SIGHUP, SIG_IGN);
    leave_session();
}

/* Who was about to write down an event when the program was left has done so a little later. */
static void watch_on(struct collector *work, int process, bool is_sent) {
    const uint32_t *state = &work->claim.header->state;
    while (process_is_there(process, collector_tick(work)) && !collector_over(work) &&
           claim_load_u32(state) == MEMTRACE_STATE_RUNNING) {
        if (is_sent) {
            streaming_tick();
        }
    }
    if (work->record != NULL && claim_load_u32(state) == MEMTRACE_STATE_ENDED) {
        process_is_there(process, LEAVING_MS);
    }
    free(collector_finish(work, true));
    if (is_sent) {
        streaming_end();
    }
}

/* The region may not be whole yet. */
static enum claim_status watch_claim(struct collector *work, pid_t pid, char *output,
                                     struct error *error) {
    enum claim_status status;
    for (int tries = 0;; tries++) {
        status = claim_outside(pid, output, &work->claim, error);
        if (status != CLAIM_EMPTY || tries == CLAIM_TRIES) {
            return status;
        }
        poll(NULL, 0, TRY_MS);
    }
}

/* As its own, so that the program's files are found after its end. */
static void keep_root(pid_t pid) {
    char root[64];
    int fd;
    snprintf(root, sizeof root, "/proc/%ld/root", (long)pid);
    fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        snprintf(root, sizeof root, "/proc/self/fd/%d", fd);
        debugfile_set_root(root);
    }
}

int companion_watch(pid_t pid, const char *path, bool is_sent, struct error *error) {
    static char output[PATH_MAX];
    struct collector work = COLLECTOR_NONE;
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    enum claim_status status;
    pid_t child;
    snprintf(output, sizeof output, "%s", path);
    if (process < 0) {
        return error_set(error, "process %ld: %s", (long)pid, strerror(errno));
    }
    status = watch_claim(&work, pid, output, error);
    if (status != CLAIM_OK) {
        close(process);
        return status == CLAIM_BUSY ? 0 : -1;
    }
    fflush(NULL);
    child = fork();
    if (child == 0 && fork() == 0) { /* twice, so that nobody has to wait for it */
        leave_command();
        keep_root(pid);
        if (collector_attach_claimed(&work, NULL, error) == CLAIM_OK) {
            watch_on(&work, process, is_sent);
        }
        _exit(CLI_OK);
    }
    if (child == 0) {
        _exit(CLI_OK);
    }
    if (child > 0) {
        waitpid(child, NULL, 0);
    }
    claim_release(&work.claim); /* the lock is the other's, too */
    close(process);
    return child > 0 ? 1 : error_set(error, "cannot start a process: %s", strerror(errno));
}
