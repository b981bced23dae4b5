/* SPDX-License-Identifier: MIT */
/* peak.c: raising the maximum, leaving it, sharing it. See peak.h. */
#include "runtime/heap/peak.h"

enum { SMALLEST_STEP = 64 * 1024 };

static int64_t step_for(const struct memtrace_header *header) {
    int64_t step = LOAD_RELAXED(&header->maximum_bytes) / 1024;
    return step > SMALLEST_STEP ? step : SMALLEST_STEP;
}

/* A thread may have climbed by a step that it kept to itself, and fallen by as much below what it
 * told before the maximum is seen to be over. */
static void state_bound(struct memtrace_header *header) {
    uint64_t threads = LOAD_RELAXED(&header->peak_threads);
    STORE_RELAXED(&header->peak_error_bytes, threads * 2 * (uint64_t)step_for(header));
}

/* Epochs are odd while the process is at its maximum, even below it. */
static void enter_maximum(struct memtrace_header *header) {
    uint32_t epoch = LOAD_RELAXED(&header->peak_epoch);
    if ((epoch & 1) == 0) {
        __atomic_compare_exchange_n(&header->peak_epoch, &epoch, epoch + 1, 0, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
}

static void leave_maximum(struct memtrace_header *header) {
    uint32_t epoch = LOAD_RELAXED(&header->peak_epoch);
    if ((epoch & 1) != 0) {
        STORE_RELAXED(&header->maximum_ns, LOAD_RELAXED(&header->clock_ns));
        __atomic_compare_exchange_n(&header->peak_epoch, &epoch, epoch + 1, 0, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
}

/* Hands the private delta in. The epoch changes before the caller's cell does. */
static void hand_in(struct peak_share *share, struct memtrace_header *header, int64_t delta) {
    int64_t live = __atomic_add_fetch(&header->live_bytes, delta, __ATOMIC_RELAXED);
    int64_t maximum = LOAD_RELAXED(&header->maximum_bytes);
    while (live > maximum && !__atomic_compare_exchange_n(&header->maximum_bytes, &maximum, live, 1,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    if (live > maximum) {
        enter_maximum(header);
    } else if (delta < 0) {
        leave_maximum(header);
    }
    share->step = step_for(header);
    share->room = share->step;
    share->ceiling = 2 * share->step;
    state_bound(header);
}

void peak_join(struct peak_share *share, struct memtrace_header *header, int alone) {
    __atomic_fetch_add(&header->peak_threads, 1, __ATOMIC_RELAXED);
    if (alone) {
        *share = (struct peak_share){0}; /* at the maximum, which is the present: ceiling 0 */
        share->room = header->maximum_bytes - header->live_bytes;
        share->ceiling = share->room == 0 ? 0 : INT64_MAX;
        if (share->room == 0) {
            enter_maximum(header);
        }
        return;
    }
    hand_in(share, header, 0);
}

void peak_become_shared(struct peak_share *share, struct memtrace_header *header) {
    if (share->step != 0) {
        return;
    }
    header->live_bytes = header->maximum_bytes - share->room;
    __atomic_fetch_or(&header->flags, MEMTRACE_FLAG_THREADED, __ATOMIC_RELAXED);
    hand_in(share, header, 0);
}

void peak_flush(struct peak_share *share, struct memtrace_header *header) {
    if (share->step != 0) {
        hand_in(share, header, share->step - share->room);
    } else {
        STORE_RELAXED(&header->live_bytes, header->maximum_bytes - share->room);
    }
}

void peak_leave(struct peak_share *share, struct memtrace_header *header) {
    peak_flush(share, header);
    __atomic_fetch_sub(&header->peak_threads, 1, __ATOMIC_RELAXED);
}

COLD void peak_grow_slow(struct peak_share *share, struct memtrace_header *header) {
    if (share->step != 0) {
        hand_in(share, header, share->step - share->room);
        return;
    }
    STORE_RELAXED(&header->maximum_bytes, header->maximum_bytes - share->room);
    STORE_RELAXED(&header->live_bytes, header->maximum_bytes);
    share->room = 0;
    share->ceiling = 0;
    enter_maximum(header);
}

COLD void peak_shrink_slow(struct peak_share *share, struct memtrace_header *header, int64_t size) {
    if (share->step != 0) {
        hand_in(share, header, share->step - share->room - size);
        return;
    }
    leave_maximum(header); /* that the room is not 0 may be by an event that goes on just now */
    share->ceiling = INT64_MAX;
    share->room += size;
}
