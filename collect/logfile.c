/* SPDX-License-Identifier: MIT */
/* logfile.c: a log with a bound. See logfile.h. */
#include "collect/logfile.h"

#include "analyze/base/filemode.h"
#include "analyze/rows/safetext.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void logfile_start(struct logfile *log, const char *path, uint64_t most_bytes) {
    *log = (struct logfile){.fd = -1, .most_bytes = most_bytes};
    snprintf(log->path, sizeof log->path, "%s", path);
}

static void logfile_open(struct logfile *log) {
    log->fd = open(log->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, filemode());
    if (log->fd < 0) {
        char line[sizeof log->path + 200];
        snprintf(line, sizeof line, "memtrace: cannot write the log %s: %s; reports go to stderr",
                 log->path, strerror(errno));
        dprintf(STDERR_FILENO, "%s\n", make_safe(line));
        log->fd = STDERR_FILENO;
    }
}

/* Another program with the same log may have begun it anew: then that one is gone on with. */
static void logfile_begin_anew(struct logfile *log, const struct stat *ours) {
    char old[sizeof log->path + 2];
    struct stat named;
    snprintf(old, sizeof old, "%s.1", log->path);
    if (stat(log->path, &named) == 0 && named.st_ino == ours->st_ino &&
        named.st_dev == ours->st_dev && rename(log->path, old) != 0) {
        return;
    }
    close(log->fd);
    logfile_open(log);
}

static void logfile_make_room(struct logfile *log, size_t size) {
    struct stat status;
    if (log->most_bytes != 0 && log->fd != STDERR_FILENO && fstat(log->fd, &status) == 0 &&
        S_ISREG(status.st_mode) && status.st_size > 0 &&
        (uint64_t)status.st_size + size > log->most_bytes) {
        logfile_begin_anew(log, &status);
    }
}

int logfile_descriptor(struct logfile *log, size_t size) {
    if (log->fd < 0 && log->path[0] != '\0') {
        logfile_open(log);
    } else if (log->fd < 0) {
        log->fd = STDERR_FILENO;
    }
    logfile_make_room(log, size);
    return log->fd;
}

void logfile_end(struct logfile *log) {
    if (log->fd > STDERR_FILENO) {
        close(log->fd);
    }
    log->fd = -1;
}
