/* SPDX-License-Identifier: MIT */
/* below.c: see below.h. */
#define _GNU_SOURCE
#include "analyze/base/below.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Only as a place: nothing is opened. */
static int below_find(const char *root, const char *path, unsigned flags) {
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags, .resolve = RESOLVE_IN_ROOT};
    int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int found = folder >= 0 ? (int)syscall(SYS_openat2, folder, path, &how, sizeof how) : -1;
    int reason = errno;
    if (folder >= 0) {
        close(folder);
    }
    errno = reason;
    return found;
}

int below_folder(const char *root, const char *path) {
    return below_find(root, path, O_DIRECTORY);
}

int below_open(const char *root, const char *path, int flags, struct stat *status) {
    int found = below_find(root, path, (unsigned)(flags & O_NOFOLLOW));
    char name[64];
    int fd = -1;
    int reason;
    if (found < 0) {
        return -1;
    }
    if (fstat(found, status) == 0 && S_ISREG(status->st_mode)) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", found);
        fd = open(name, (flags & ~O_NOFOLLOW) | O_CLOEXEC);
        reason = errno;
    } else {
        reason = EPERM;
    }
    close(found);
    errno = reason;
    return fd;
}
