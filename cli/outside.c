/* SPDX-License-Identifier: MIT */
/* outside.c: see outside.h. */
#include "cli/outside.h"

#include "analyze/base/pathname.h"
#include "analyze/symbol/debugfile.h"
#include "cli/cli.h"
#include "cli/streaming.h"
#include "collect/collector.h"
#include "collect/recordask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 300, TRY_MS = 10, LEAVING_MS = 200 };

/* --- its name --------------------------------------------------------------------------------- */

static void read_program(pid_t pid, char program[PATH_MAX]) {
    char link[64];
    ssize_t length;
    snprintf(link, sizeof link, "/proc/%ld/exe", (long)pid);
    length = readlink(link, program, PATH_MAX - 1);
    program[length > 0 ? length : 0] = '\0';
    if (pathname_ends_in(program, " (deleted)")) {
        program[strlen(program) - sizeof " (deleted)" + 1] = '\0';
    }
}

int outside_path(const char *pattern, pid_t pid, char path[PATH_MAX], struct error *error) {
    char folder[PATH_MAX];
    char program[PATH_MAX];
    size_t length = 0;
    if (getcwd(folder, sizeof folder) == NULL) {
        return error_set(error, "cannot tell where this is: %s", strerror(errno));
    }
    if (pattern[0] != '/') {
        length = (size_t)snprintf(path, PATH_MAX, "%s/", folder);
    }
    read_program(pid, program);
    if (length < PATH_MAX) {
        recordask_expand(pattern, pid, pathname_base(program), 0, path + length, PATH_MAX - length);
    }
    if (strlen(path) > 1000) {
        return error_set(error, "the name of the profile is too long");
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(pathname_base(path) - path), path);
    return access(folder, W_OK) == 0 ? 0 : error_set(error, "%s: %s", folder, strerror(errno));
}

/* --- beside the program ----------------------------------------------------------------------- */

/* Nothing of the command's is kept: not its pipes, its terminal's job, its folder. */
static void leave_command(void) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++) {
        dup2(null, fd);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    setsid();
    if (chdir("/") != 0) {
        return; /* it only keeps a folder busy */
    }
}

static bool outside_is_there(int process, int ms) {
    struct pollfd ended = {.fd = process, .events = POLLIN};
    return poll(&ended, 1, ms) == 0 || (ended.revents & POLLIN) == 0;
}

/* Who was about to write down an event when the program was left has done so a little later. */
static void outside_go_on(struct collector *work, int process, bool is_sent) {
    const uint32_t *state = &work->claim.header->state;
    while (outside_is_there(process, collector_tick(work)) && !collector_over(work) &&
           claim_load_u32(state) == MEMTRACE_STATE_RUNNING) {
        if (is_sent) {
            streaming_tick();
        }
    }
    if (work->record != NULL && claim_load_u32(state) == MEMTRACE_STATE_ENDED) {
        outside_is_there(process, LEAVING_MS);
    }
    free(collector_finish(work, true));
    if (is_sent) {
        streaming_end();
    }
}

/* The region may not be whole yet. */
static enum claim_status outside_claim(struct collector *work, pid_t pid, char *output,
                                       struct error *error) {
    enum claim_status status;
    for (int tries = 0;; tries++) {
        status = claim_outside(pid, output, &work->claim, error);
        if (status != CLAIM_EMPTY || tries == TRIES) {
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

int outside_watch(pid_t pid, const char *path, bool is_sent, struct error *error) {
    static char output[PATH_MAX];
    struct collector work = COLLECTOR_NONE;
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    enum claim_status status;
    pid_t child;
    snprintf(output, sizeof output, "%s", path);
    if (process < 0) {
        return error_set(error, "process %ld: %s", (long)pid, strerror(errno));
    }
    status = outside_claim(&work, pid, output, error);
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
            outside_go_on(&work, process, is_sent);
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
