/* SPDX-License-Identifier: MIT */
/* orphan.c: a new collector for a running program. See orphan.h. */
#include "collect/orphan.h"

#include "analyze/base/scope.h"
#include "collect/claim.h"
#include "collect/clock.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* As long as a collector may be busy with one round. */
#define SILENCE_NS UINT64_C(3000000000)

/* A collector that is only stopped still has its claim. */
bool orphan_is(const char *path) {
    struct claim claim;
    if (claim_open(path, &claim, NULL) != CLAIM_OK) {
        return false;
    }
    claim_release(&claim);
    return true;
}

/* Twice forked, so that nobody has to wait for the companion. */
void orphan_start(const char *path) {
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            int null = open("/dev/null", O_RDWR | O_CLOEXEC);
            for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++) {
                dup2(null, fd);
            }
            execl("/proc/self/exe", "memtrace", "companion", path, (char *)NULL);
            _exit(127);
        }
        _exit(0);
    }
    if (child > 0) {
        waitpid(child, NULL, 0);
    }
}

/* Whether nobody has emptied the buffers for some time. Read without a lock, which a collector that
 * is about to attach would take for another's. */
static bool is_silent(const char *path) {
    struct memtrace_header header;
    const struct memtrace_recording *recording = (const void *)header.recording;
    SCOPE_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
           header.state == MEMTRACE_STATE_RUNNING &&
           (recording->state == MEMTRACE_RECORD_WANTED ||
            recording->state == MEMTRACE_RECORD_OPENED ||
            recording->state == MEMTRACE_RECORD_ENDING ||
            recording->state == MEMTRACE_RECORD_LEFT) &&
           recording->heartbeat_ns != 0 && clock_now_ns() > recording->heartbeat_ns + SILENCE_NS;
}

void orphan_help(const char *path) {
    if (is_silent(path) && orphan_is(path)) {
        orphan_start(path);
    }
}
