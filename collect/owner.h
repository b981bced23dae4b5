/* SPDX-License-Identifier: MIT */
/* owner.h: files go to who is to own them (MEMTRACE_OWNER). Called by whoever writes one. */
#ifndef COLLECT_OWNER_H
#define COLLECT_OWNER_H

#include "memtrace/format.h"

#include <unistd.h>

/* Without the rights the file stays ours. */
static inline void owner_give(int fd, const struct memtrace_owner *owner) {
    if (owner->is_set && fchown(fd, owner->uid, owner->gid) != 0) {
        return;
    }
}

#endif
