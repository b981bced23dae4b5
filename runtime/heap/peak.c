/* SPDX-License-Identifier: MIT */
/* peak.c: raising the maximum, leaving it, sharing it. See peak.h. */
#include "runtime/heap/peak.h"

#include "runtime/base/sys.h"

enum {
    SMALLEST_STEP = 64 * 1024,
    FINER = 16, /* times: while there is credit */
    EVENTS_PER_CREDIT = 1024,
    MOST_CREDIT = 64,
    READ_TRIES = 1000
};

/* The thread that is alone, or was until another came: until it has seen that. */
static WRITTEN_BY_CHILDREN struct {
    struct peak_share *share;
    struct trylock lock; /* held while another tells on its behalf */
} first;

/* What bounds the error: the sum of the steps of the threads that are there, and what the process
 * can have held at most, at any time. */
static WRITTEN_BY_CHILDREN struct { int64_t steps, most; } bound;

/* See peak_begin_own(). */
static WRITTEN_BY_CHILDREN struct {
    uint64_t *maximum; /* NULL: nobody wants to know */
    int64_t freed;     /* of inherited blocks */
} own;

static void set_step(struct peak_share *share, int64_t step) {
    __atomic_fetch_add(&bound.steps, step - share->step, __ATOMIC_RELAXED);
    share->step = step;
}

/* Fine steps are paid by what the thread does: who tells at each of a few events is soon past it.
 */
static void choose_step(struct peak_share *share, const struct memtrace_header *header) {
    uint64_t events = share->counts->alloc_count + share->counts->free_count;
    uint64_t earned = (events - share->paid_events) / EVENTS_PER_CREDIT;
    int64_t part = LOAD_RELAXED(&header->maximum_bytes) / 1024;
    int64_t most = part > SMALLEST_STEP ? part : SMALLEST_STEP;
    int64_t step = 2 * share->step;
    share->paid_events += earned * EVENTS_PER_CREDIT;
    share->credit = share->credit + earned < MOST_CREDIT ? share->credit + earned : MOST_CREDIT;
    if (share->credit != 0) {
        share->credit--;
        step = most / FINER;
    }
    set_step(share, step < most ? step : most);
}

/* Each thread may have climbed by a step that it kept to itself, and fallen by as much below what
 * it told before the maximum is seen to be over: what was told, and both of all, is what can have
 * been held. */
static void state_bound(struct memtrace_header *header) {
    int64_t held = LOAD_RELAXED(&header->live_bytes) + 2 * LOAD_RELAXED(&bound.steps);
    int64_t most = LOAD_RELAXED(&bound.most);
    while (held > most && !__atomic_compare_exchange_n(&bound.most, &most, held, 1,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    held = (held > most ? held : most) - LOAD_RELAXED(&header->maximum_bytes);
    STORE_RELAXED(&header->peak_error_bytes, (uint64_t)(held > 0 ? held : 0));
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

/* The thread has `live` bytes. The epoch changes before the caller's cell does. Whoever tells: the
 * sum of all that was told is right at any moment. */
static void peak_tell(struct peak_share *share, struct memtrace_header *header, int64_t live) {
    int64_t delta = live - __atomic_exchange_n(&share->told, live, __ATOMIC_RELAXED);
    int64_t all = __atomic_add_fetch(&header->live_bytes, delta, __ATOMIC_RELAXED);
    int64_t maximum = LOAD_RELAXED(&header->maximum_bytes);
    while (all > maximum && !__atomic_compare_exchange_n(&header->maximum_bytes, &maximum, all, 1,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    if (all > maximum) {
        enter_maximum(header);
    } else if (delta < 0) {
        leave_maximum(header);
    }
    if (UNLIKELY(own.maximum != NULL) && live + own.freed > (int64_t)*own.maximum) {
        STORE_RELAXED(own.maximum, (uint64_t)(live + own.freed));
    }
}

/* --- the first thread, once it is not alone --------------------------------------------------- */

/* Its live bytes at one moment: between two looks at what it allocated that say the same. */
static int64_t read_live(const struct memtrace_counts *counts) {
    uint64_t allocated = LOAD_ACQUIRE(&counts->alloc_bytes);
    uint64_t freed = 0;
    for (int i = 0; i < READ_TRIES; i++) {
        uint64_t before = allocated;
        freed = LOAD_ACQUIRE(&counts->free_bytes);
        allocated = LOAD_ACQUIRE(&counts->alloc_bytes);
        if (allocated == before) {
            break;
        }
    }
    return (int64_t)(allocated - freed);
}

static void expect_anything(struct peak_share *share) {
    STORE_RELAXED(&share->low, INT64_MAX);
    STORE_RELAXED(&share->high, INT64_MIN);
}

/* Its next event finds limits that nothing can keep to, or the mode after it has set its own. */
void peak_end_alone(struct memtrace_header *header) {
    struct peak_share *share;
    if (LIKELY(LOAD_RELAXED(&first.share) == NULL) || !trylock_take(&first.lock)) {
        return;
    }
    share = LOAD_RELAXED(&first.share);
    if (share != NULL) {
        __atomic_fetch_or(&header->flags, MEMTRACE_FLAG_THREADED, __ATOMIC_RELAXED);
        STORE_RELAXED(&share->mode, (uint32_t)PEAK_SHARED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        expect_anything(share);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        peak_tell(share, header, read_live(share->counts));
    }
    trylock_release(&first.lock);
}

/* The first thread knows: nobody tells on its behalf any more. 0: somebody does just now. */
static int take_over(struct peak_share *share) {
    if (LOAD_RELAXED(&first.share) == share) {
        if (!sys_take(&first.lock)) {
            return 0;
        }
        STORE_RELAXED(&first.share, NULL);
        trylock_release(&first.lock);
    }
    return 1;
}

void peak_fork(void) {
    bound.steps = bound.most = 0;
    first.share = NULL;
    trylock_fork(&first.lock);
    own.maximum = NULL;
}

/* --- limits ----------------------------------------------------------------------------------- */

static void limit_alone(struct peak_share *share, int64_t low, int64_t high) {
    STORE_RELAXED(&share->low, low);
    STORE_RELAXED(&share->high, high);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (UNLIKELY(LOAD_RELAXED(&share->mode) != PEAK_ALONE)) {
        expect_anything(share);
    }
}

/* With how many live bytes of the thread, which has told `live`, its process is where its maximum
 * was. */
static int64_t height(const struct memtrace_header *header, int64_t live) {
    return live + LOAD_RELAXED(&header->maximum_bytes) - LOAD_RELAXED(&header->live_bytes);
}

/* At a maximum nothing more is asked until it frees, or is at the other as well. */
static void limit_at_maximum(struct peak_share *share, const struct memtrace_header *header,
                             int64_t live) {
    int64_t high = height(header, live);
    limit_alone(share, INT64_MAX, live < high ? high : INT64_MAX);
}

static void limit_below(struct peak_share *share, const struct memtrace_header *header,
                        int64_t live) {
    int64_t high = height(header, live);
    if (UNLIKELY(own.maximum != NULL) && (int64_t)*own.maximum - own.freed < high) {
        high = (int64_t)*own.maximum - own.freed; /* the maximum of its own blocks */
    }
    limit_alone(share, INT64_MIN, high);
}

static void limit_shared(struct peak_share *share, struct memtrace_header *header, int64_t live) {
    STORE_RELAXED(&share->low, live - share->step);
    STORE_RELAXED(&share->high, live + share->step);
    state_bound(header);
}

static void tell_shared(struct peak_share *share, struct memtrace_header *header, int64_t live) {
    if (!take_over(share)) {
        return; /* at the next event, then */
    }
    peak_end_alone(header);
    peak_tell(share, header, live);
    choose_step(share, header);
    limit_shared(share, header, live);
}

/* --- threads ---------------------------------------------------------------------------------- */

void peak_join(struct peak_share *share, struct memtrace_header *header,
               const struct memtrace_counts *counts, enum peak_mode mode) {
    int64_t live = peak_live(counts);
    *share = (struct peak_share){.told = live,
                                 .counts = counts,
                                 .paid_events = counts->alloc_count + counts->free_count,
                                 .credit = MOST_CREDIT,
                                 .mode = mode};
    __atomic_fetch_add(&header->peak_threads, 1, __ATOMIC_RELAXED);
    if (mode == PEAK_SHARED) {
        __atomic_fetch_or(&header->flags, MEMTRACE_FLAG_THREADED, __ATOMIC_RELAXED);
        tell_shared(share, header, live);
        return;
    }
    STORE_RELEASE(&first.share, share);
    if (height(header, live) == live) {
        enter_maximum(header);
        limit_at_maximum(share, header, live);
    } else {
        limit_below(share, header, live);
    }
}

void peak_move(struct peak_share *share, const struct memtrace_counts *counts) {
    share->counts = counts;
}

void peak_become_shared(struct peak_share *share, struct memtrace_header *header) {
    if (LOAD_RELAXED(&share->mode) == PEAK_ALONE) {
        __atomic_fetch_or(&header->flags, MEMTRACE_FLAG_THREADED, __ATOMIC_RELAXED);
        STORE_RELAXED(&share->mode, (uint32_t)PEAK_SHARED);
        expect_anything(share);
        tell_shared(share, header, peak_live(share->counts));
    }
}

void peak_flush(struct peak_share *share, struct memtrace_header *header) {
    int64_t live = peak_live(share->counts);
    if (LOAD_RELAXED(&share->mode) == PEAK_ALONE) {
        peak_tell(share, header, live); /* the limits are those of its live bytes: they stay */
    } else if (share->step == 0) {
        tell_shared(share, header, live);
    } else {
        peak_tell(share, header, live);
        limit_shared(share, header, live);
    }
}

void peak_leave(struct peak_share *share, struct memtrace_header *header) {
    take_over(share);
    peak_tell(share, header, peak_live(share->counts));
    set_step(share, 0);
    __atomic_fetch_sub(&header->peak_threads, 1, __ATOMIC_RELAXED);
}

COLD void peak_grow_slow(struct peak_share *share, struct memtrace_header *header, int64_t live) {
    if (LOAD_RELAXED(&share->mode) == PEAK_ALONE) {
        peak_tell(share, header, live);
        limit_at_maximum(share, header, live);
    } else {
        tell_shared(share, header, live);
    }
}

COLD void peak_shrink_slow(struct peak_share *share, struct memtrace_header *header, int64_t live,
                           uint64_t size) {
    if (LOAD_RELAXED(&share->mode) == PEAK_ALONE) { /* the maximum was before this free */
        int64_t highest = live + (int64_t)size;
        peak_tell(share, header, highest);
        leave_maximum(header);
        limit_below(share, header, highest);
    } else {
        tell_shared(share, header, live);
    }
}

/* --- a light child's own ---------------------------------------------------------------------- */

void peak_begin_own(struct peak_share *share, struct memtrace_header *header, uint64_t *maximum) {
    own.freed = 0;
    own.maximum = maximum;
    peak_before_inherited(share, header);
    peak_after_inherited(share, header, 0);
}

void peak_end_own(void) {
    own.maximum = NULL;
}

void peak_before_inherited(struct peak_share *share, struct memtrace_header *header) {
    if (own.maximum != NULL) {
        peak_tell(share, header, peak_live(share->counts));
        leave_maximum(header);
    }
}

void peak_after_inherited(struct peak_share *share, struct memtrace_header *header, uint64_t size) {
    if (own.maximum != NULL) {
        own.freed += (int64_t)size;
        limit_below(share, header, peak_live(share->counts));
    }
}
