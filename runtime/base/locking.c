/* SPDX-License-Identifier: MIT */
/* locking.c: the program's mappings, locked one by one. See locking.h. */
#define _GNU_SOURCE
#include "runtime/base/locking.h"

#include "runtime/base/compiler.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"

#include <fcntl.h>
#include <sys/mman.h>

struct range {
    uintptr_t start, end;
};

/* What of ours contains the address, or else is the next behind it. */
static struct range ours_at(uintptr_t address, struct range region) {
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

static long apply(enum what what, uintptr_t start, uintptr_t end) {
    return what == UNLOCK ? sys_unlock((void *)start, end - start)
                          : sys_lock((void *)start, end - start, what == LOCK_LATER);
}

/* All of the range that is not ours. 0 or a negative errno. */
static long visit(enum what what, struct range range, struct range region) {
    long result = 0;
    while (range.start < range.end && result == 0) {
        struct range ours = ours_at(range.start, region);
        uintptr_t end = ours.start < range.end ? ours.start : range.end;
        if (end > range.start) {
            result = apply(what, range.start, end);
            range.start = end;
        } else {
            range.start = ours.end;
        }
    }
    return what == LOCK_NOW ? 0 : result; /* what has no access cannot be brought in */
}

/* Of a line "START-END PERMISSIONS ..." of /proc/self/maps, read byte by byte. */
struct line {
    struct range range;
    int field; /* 0: the start, 1: the end, 2: the rest */
};

static void read_byte(struct line *line, char byte) {
    uintptr_t digit = byte >= 'a' ? (uintptr_t)(byte - 'a' + 10) : (uintptr_t)(byte - '0');
    if (line->field == 2) {
        return;
    }
    if (byte == '-' || byte == ' ') {
        line->field++;
    } else if (line->field == 0) {
        line->range.start = line->range.start << 4 | digit;
    } else {
        line->range.end = line->range.end << 4 | digit;
    }
}

/* Does it to all of the program's mappings. 0 or a negative errno, also where there is no list. */
static long visit_all(enum what what, struct range region) {
    char buffer[512];
    struct line line = {{0, 0}, 0};
    long fd = sys_open("/proc/self/maps", O_RDONLY, 0);
    long size;
    long result = fd < 0 ? fd : 0;
    while (result == 0 && (size = sys_read((int)fd, buffer, sizeof buffer)) > 0) {
        for (long i = 0; i < size && result == 0; i++) {
            if (buffer[i] != '\n') {
                read_byte(&line, buffer[i]);
                continue;
            }
            if ((intptr_t)line.range.end > 0) { /* not the kernel's */
                result = visit(what, line.range, region);
            }
            line = (struct line){{0, 0}, 0};
        }
    }
    if (fd >= 0) {
        sys_close((int)fd);
    }
    return result;
}

/* Without a list: all, and then not ours. */
static long lock_without_list(int flags, struct range region) {
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

static long lock_current(int flags, struct range region) {
    long result = sys_access("/proc/self/maps", R_OK);
    if (result != 0) {
        return lock_without_list(flags, region);
    }
    result = visit_all(LOCK_LATER, region);
    if (result != 0) { /* more than may be locked: as the kernel, none then */
        visit_all(UNLOCK, region);
        return result;
    }
    if ((flags & MCL_ONFAULT) == 0) {
        visit_all(LOCK_NOW, region);
    }
    return 0;
}

long locking_lock_all(int flags, const uint8_t *region, size_t region_bytes) {
    struct range range = {(uintptr_t)region, (uintptr_t)region + region_bytes};
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
        result = lock_current(flags, range);
    }
    if (result == 0 && (flags & MCL_FUTURE) != 0) {
        result = sys_lock_all(future);
    }
    return result;
}

long locking_unlock_all(void) {
    return sys_unlock_all();
}
