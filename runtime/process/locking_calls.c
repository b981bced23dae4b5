/* SPDX-License-Identifier: MIT */
/*
 * locking_calls.c: mlockall and munlockall, which the program gets without what is the runtime's:
 * that would be brought into memory as a whole, and count where locked memory is limited
 * (RLIMIT_MEMLOCK). So the program's mappings are locked one by one.
 */
#define _GNU_SOURCE
#include "runtime/base/compiler.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/proc.h"
#include "runtime/base/sys.h"
#include "runtime/entry/runtime.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

struct range {
    uintptr_t start, end;
};

/* What of ours contains the address, or else is the next behind it. */
static struct range locking_ours_at(uintptr_t address, struct range region) {
    struct range found = {UINTPTR_MAX, UINTPTR_MAX};
    for (uint32_t i = 0; i <= LOAD_ACQUIRE(&own_maps.count); i++) {
        struct range it = region;
        if (i != 0) {
            it.start = (uintptr_t)LOAD_ACQUIRE(&own_maps.map[i - 1].start);
            it.end = it.start + (uintptr_t)sys_page_up(LOAD_RELAXED(&own_maps.map[i - 1].size));
        }
        if (it.start > MEMTRACE_OWN_BEING_WRITTEN && it.end > address && it.start < found.start) {
            found = it;
        }
    }
    return found;
}

enum what { LOCK_LATER, LOCK_NOW, UNLOCK };

/* All of the range that is not ours. 0 or a negative errno. */
static long locking_visit(enum what what, struct range range, struct range region) {
    long result = 0;
    while (range.start < range.end && result == 0) {
        struct range ours = locking_ours_at(range.start, region);
        uintptr_t end = ours.start < range.end ? ours.start : range.end;
        if (end > range.start) {
            void *start = (void *)range.start;
            result = what == UNLOCK ? sys_unlock(start, end - range.start)
                                    : sys_lock(start, end - range.start, what == LOCK_LATER);
            range.start = end;
        } else {
            range.start = ours.end;
        }
    }
    return what == LOCK_NOW ? 0 : result; /* what has no access cannot be brought in */
}

/* Does it to all of the program's mappings. 0 or a negative errno, also where there is no list. */
static long locking_visit_all(enum what what, struct range region) {
    struct proc_maps maps;
    long result = 0;
    proc_open_maps(&maps);
    while (result == 0 && proc_next_map(&maps)) {
        if ((intptr_t)maps.end > 0) { /* not the kernel's */
            result = locking_visit(what, (struct range){maps.start, maps.end}, region);
        }
    }
    proc_close_maps(&maps);
    return maps.fd < 0 ? maps.fd : result;
}

/* Without a list: all, and then not ours. */
static long locking_without_list(int flags, struct range region) {
    long result = sys_lock_all(flags);
    for (uint32_t i = 0; result == 0 && i < LOAD_ACQUIRE(&own_maps.count); i++) {
        uintptr_t start = (uintptr_t)LOAD_ACQUIRE(&own_maps.map[i].start);
        if (start > MEMTRACE_OWN_BEING_WRITTEN) {
            sys_unlock((void *)start, LOAD_RELAXED(&own_maps.map[i].size));
        }
    }
    if (result == 0) {
        sys_unlock((void *)region.start, region.end - region.start);
    }
    return result;
}

static long locking_current(int flags, struct range region) {
    long result = sys_access("/proc/self/maps", R_OK);
    if (result != 0) {
        return locking_without_list(flags, region);
    }
    result = locking_visit_all(LOCK_LATER, region);
    if (result != 0) { /* more than may be locked: as the kernel, none then */
        locking_visit_all(UNLOCK, region);
        return result;
    }
    if ((flags & MCL_ONFAULT) == 0) {
        locking_visit_all(LOCK_NOW, region);
    }
    return 0;
}

/* As the system call: 0 or a negative errno. */
static long locking_lock_all(int flags) {
    const struct room *room = &runtime.space.room;
    uintptr_t start = (uintptr_t)room->base;
    struct range range = {start, start + LOAD_ACQUIRE(&room->reserved)};
    int future = flags & (MCL_FUTURE | MCL_ONFAULT);
    long result = 0;
    if ((flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) != 0 ||
        (flags & (MCL_CURRENT | MCL_FUTURE)) == 0) {
        return sys_lock_all(flags);
    }
    if ((flags & MCL_FUTURE) == 0 && sys_locks_future()) {
        sys_unlock_all();
    }
    if ((flags & MCL_CURRENT) != 0) {
        result = locking_current(flags, range);
    }
    if (result == 0 && (flags & MCL_FUTURE) != 0) {
        result = sys_lock_all(future);
    }
    return result;
}

static int locking_told(long result) {
    if (result != 0) {
        errno = (int)-result;
    }
    return result == 0 ? 0 : -1;
}

PUBLIC int mlockall(int flags) {
    return locking_told(locking_lock_all(flags));
}

PUBLIC int munlockall(void) {
    return locking_told(sys_unlock_all());
}
