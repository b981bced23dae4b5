/* SPDX-License-Identifier: MIT */
/* locking_calls.c: mlockall and munlockall, which the program gets without what is ours. */
#define _GNU_SOURCE
#include "runtime/base/compiler.h"
#include "runtime/base/locking.h"
#include "runtime/entry/runtime.h"

#include <errno.h>
#include <sys/mman.h>

static int told(long result) {
    if (result != 0) {
        errno = (int)-result;
    }
    return result == 0 ? 0 : -1;
}

PUBLIC int mlockall(int flags) {
    const struct room *room = &runtime.space.room;
    return told(locking_lock_all(flags, room->base, LOAD_ACQUIRE(&room->reserved)));
}

PUBLIC int munlockall(void) {
    return told(locking_unlock_all());
}
