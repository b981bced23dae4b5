/* SPDX-License-Identifier: MIT */
/*
 * companion.c: `memtrace companion REGION`: the collector of a program that runs without `memtrace
 * run`. The runtime starts it (forked twice, so that the program never sees it as a child).
 *
 * It stays until the program is gone or has replaced itself by exec, and finishes the profile only
 * if the program did not do so itself.
 */
#include "cli/cli.h"
#include "collect/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ATTACH_TRIES = 200, ATTACH_WAIT_MS = 10, LEAVING_MS = 200, LATE_MS = 300 };

/* Nothing of the program's is kept but stderr: not its pipes, its terminal job, its folder, its
 * signal settings. */
static void detach(void) {
    struct sigaction normal = {.sa_handler = SIG_DFL};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t none;
    int null = open("/dev/null", O_RDWR);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        if (fcntl(STDERR_FILENO, F_GETFD) < 0) {
            dup2(null, STDERR_FILENO);
        }
    }
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
    for (int number = 1; number <= SIGRTMAX; number++) {
        sigaction(number, &normal, NULL);
    }
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (chdir("/") != 0) {
        return; /* it only keeps a folder busy */
    }
}

/* A library preloaded into the program came along: start again without it. */
static void shed_preload(char **argv) {
    if (getenv("LD_PRELOAD") != NULL) {
        char self[] = "memtrace";
        char *again[] = {self, argv[0], argv[1], argv[1] != NULL ? argv[2] : NULL, NULL};
        unsetenv("LD_PRELOAD");
        execv("/proc/self/exe", again);
    }
}

/* The region may not be whole yet, or another command may be looking at it. */
static enum claim_status attach(struct collector *work, const char *path, struct error *error) {
    enum claim_status status;
    for (int tries = 0;; tries++) {
        status = collector_attach(work, path, NULL, error);
        if ((status != CLAIM_BUSY && status != CLAIM_EMPTY) || tries == ATTACH_TRIES) {
            return status;
        }
        poll(NULL, 0, ATTACH_WAIT_MS);
    }
}

/* Waits; whether the process still exists afterwards. */
static bool wait_alive(const struct collector *work, int process, int ms) {
    struct pollfd ended = {.fd = process, .events = POLLIN};
    if (process >= 0) {
        return poll(&ended, 1, ms) == 0 || (ended.revents & POLLIN) == 0;
    }
    poll(NULL, 0, ms);
    return claim_is_alive(&work->claim);
}

/* The program died without finishing, or is now another one. */
static void finish(struct collector *work) {
    char *text = collector_finish(work, true);
    if (text != NULL) {
        collector_write(STDERR_FILENO, text);
    }
    free(text);
}

/* The runtime has left a program that goes on (`memtrace detach`), not one that is just ending. Who
 * was about to write down an event then has done so. The region is for us to take away. */
static bool has_left(const struct collector *work, int process) {
    return work->record != NULL &&
           claim_load_u32(&work->claim.header->state) == MEMTRACE_STATE_ENDED &&
           wait_alive(work, process, LEAVING_MS);
}

/* It was started for a recording that began in the middle of the run (collect/recordask.h), which
 * is over. */
static bool has_recorded(const struct collector *work) {
    return work->record == NULL && collector_only_records(work);
}

static int run_companion(int argc, char **argv) {
    struct collector work = COLLECTOR_NONE;
    struct error error = {""};
    enum claim_status status;
    int process;
    if (argc < 2 || argc > 3 || argv[1][0] != '/') {
        return cli_usage("companion", "started by the runtime, with the path of a profile region");
    }
    detach();
    shed_preload(argv);
    if (argc == 3) { /* of a run in another namespace, whose own collector may see it, too */
        poll(NULL, 0, LATE_MS);
    }
    status = attach(&work, argv[1], &error);
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
    } else {
        finish(&work);
    }
    return CLI_OK;
}

const struct command companion_command = {.name = "companion", .run = run_companion};
