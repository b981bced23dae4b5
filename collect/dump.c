/* SPDX-License-Identifier: MIT */
/* dump.c: copying a live region. See dump.h. */
#include "collect/dump.h"

#include "collect/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char ending[] = ".mtp";

static void name_beside(const char *output, char *path, size_t capacity) {
    size_t length = strnlen(output, sizeof((struct memtrace_header *)NULL)->output - 1);
    size_t stem = length;
    if (length >= sizeof ending - 1 &&
        memcmp(output + length - 4, ending, sizeof ending - 1) == 0) {
        stem = length - (sizeof ending - 1);
    }
    snprintf(path, capacity, "%.*s.limit%.*s", (int)stem, output, (int)(length - stem),
             output + stem);
}

/* /dev/null takes a copy, too; nothing is made beside it. */
static bool is_device(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* The copy is no running program's. */
static int mark(const char *path, struct error *error) {
    uint32_t state = MEMTRACE_STATE_COPIED;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t done =
        fd >= 0 ? pwrite(fd, &state, sizeof state, offsetof(struct memtrace_header, state)) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return done == sizeof state ? 0
                                : error_set(error, "cannot write %s: %s", path, strerror(errno));
}

int dump_copy(int fd, uint64_t size, const char *target, char *path, size_t capacity,
              struct error *error) {
    return copy_region(fd, size, target, COPY_REPLACE, 0, path, capacity, error) == 0
               ? mark(path, error)
               : -1;
}

int dump_region(const struct claim *claim, char *path, size_t capacity, struct error *error) {
    char target[sizeof claim->header->output + 16];
    if (is_device(claim->header->output)) {
        snprintf(target, sizeof target, "%s", claim->header->output);
    } else {
        name_beside(claim->header->output, target, sizeof target);
    }
    return dump_copy(claim->fd, claim_load_u64(&claim->header->end), target, path, capacity, error);
}
