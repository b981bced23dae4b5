/* SPDX-License-Identifier: MIT */
/* below.c: see below.h. */
#define _GNU_SOURCE
#include "analyze/base/below.h"

#include "analyze/base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Only as a place: nothing is opened. */
static int below_find(const char *root, const char *path, unsigned flags) {
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | flags, .resolve = RESOLVE_IN_ROOT};
    SCOPE_FD int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return folder >= 0 ? (int)syscall(SYS_openat2, folder, path, &how, sizeof how) : -1;
}

int below_folder(const char *root, const char *path) {
    return below_find(root, path, O_DIRECTORY);
}

int below_open(const char *root, const char *path, int flags, struct stat *status) {
    SCOPE_FD int found = below_find(root, path, (unsigned)(flags & O_NOFOLLOW));
    char name[64];
    if (found < 0) {
        return -1;
    }
    if (fstat(found, status) != 0 || !S_ISREG(status->st_mode)) {
        errno = EPERM;
        return -1;
    }
    snprintf(name, sizeof name, "/proc/self/fd/%d", found);
    return open(name, (flags & ~O_NOFOLLOW) | O_CLOEXEC);
}
