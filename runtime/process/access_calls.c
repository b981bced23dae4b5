/* SPDX-License-Identifier: MIT */
/*
 * access_calls.c: calls after which the program may not find or not open its region's file any
 * more: it becomes another user, has another root, or other mounts. No descriptor of the file is
 * open otherwise. What does so by raw system calls is not seen: then the region grows no more, and
 * what does not fit is counted as lost.
 */
#define _GNU_SOURCE
#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

/* Also in a forked child that did nothing yet: its light record will be in the same file. */
#define AROUND(call)                                                                               \
    ({                                                                                             \
        int result_;                                                                               \
        space_hold(&runtime.space);                                                                \
        result_ = (call);                                                                          \
        space_let_go(&runtime.space);                                                              \
        result_;                                                                                   \
    })

PUBLIC int setuid(uid_t uid) {
    return AROUND(REAL(setuid)(uid));
}

PUBLIC int seteuid(uid_t uid) {
    return AROUND(REAL(seteuid)(uid));
}

PUBLIC int setreuid(uid_t user, uid_t effective) {
    return AROUND(REAL(setreuid)(user, effective));
}

PUBLIC int setresuid(uid_t user, uid_t effective, uid_t saved) {
    return AROUND(REAL(setresuid)(user, effective, saved));
}

PUBLIC int chroot(const char *path) {
    return AROUND(REAL(chroot)(path));
}

PUBLIC int unshare(int flags) {
    return AROUND(REAL(unshare)(flags));
}

PUBLIC int setns(int fd, int kind) {
    return AROUND(REAL(setns)(fd, kind));
}

PUBLIC int mount(const char *source, const char *target, const char *type, unsigned long flags,
                 const void *data) {
    return AROUND(REAL(mount)(source, target, type, flags, data));
}
