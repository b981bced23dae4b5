/* SPDX-License-Identifier: MIT */
/*
 * ledger.h: what did each context cost? One column of cells a thread, all in the profile.
 *
 * Invariants:
 *   live(context) = sum over columns of alloc_bytes - free_bytes   (each alone may be negative)
 *   a cell has one writer, the thread that holds the column; its counters only grow
 *   peak: see format.h, struct memtrace_header; at most one save a cell and peak
 * A dead thread's column goes to the next new thread as it is: nothing is ever folded or moved.
 * Most threads need few cells: a column begins with groups of 64, of a page each.
 * Private leaves have a budget; past it, threads write the shared column 0 with atomics. So the
 * ledger never takes more than LEDGER_PRIVATE_BYTES + 56 bytes a context, whatever the number of
 * threads.
 */
#ifndef RUNTIME_HEAP_LEDGER_H
#define RUNTIME_HEAP_LEDGER_H

#include "runtime/base/compiler.h"
#include "runtime/base/space.h"
#include "runtime/heap/peak.h"

enum {
    LEDGER_GROUPS = 1 << (MEMTRACE_CONTEXT_BITS - MEMTRACE_GROUP_SHIFT),
    LEDGER_GROUPS_PER_LEAF = MEMTRACE_LEAF_ITEMS / MEMTRACE_GROUP_ITEMS,
    LEDGER_LEAF_PAGES = MEMTRACE_LEAF_ITEMS * sizeof(struct memtrace_cell) / MEMTRACE_PAGE_SIZE,
    LEDGER_PRIVATE_BYTES = 128 << 20, /* beyond the first thread's column */
    LEDGER_FEW_GROUPS = 16,           /* a column that has so many opens whole leaves */
    LEDGER_LIFETIMES_RUN = 16,        /* records of lifetimes that a column takes at a time */
};

struct ledger_column {
    uint32_t number;
    uint32_t groups;                        /* opened one by one */
    uint32_t lifetimes_next, lifetimes_end; /* free places for this column's lifetime records */
    struct ledger_column *next_free;
    struct ledger_column *next_made;
    /* NULL: not opened, or the shared one is used. Last, so that the first groups and the fields
     * share a page, of which a forked child has to make a copy. */
    struct memtrace_cell *group[LEDGER_GROUPS];
};

struct ledger {
    struct space *space;
    struct ledger_column *made;   /* all columns that have numbers */
    struct ledger_column *shared; /* column 0: written with atomics, from the slow path only */
    struct ledger_column *proxy;  /* what a thread without a column holds: has no leaf, ever */
    uint32_t lifetimes_taken;     /* ids given out */
    uint32_t columns;             /* numbers given out, the shared one included */
    uint32_t private_pages;
    struct ledger_column *free;
    struct ledger_column *fresh; /* untouched ones, in one mapping */
    uint32_t fresh_count;
    struct trylock lock; /* of both */
    struct memtrace_lifetimes *lifetimes[1 << 14];
};

/* What one event changes. */
struct ledger_event {
    uint32_t context;
    uint32_t lifetime_bucket;
    uint64_t size;
    int temporary;
};

/* A new ledger, all zeros before. 0, or -1: no memory. */
int ledger_init(struct ledger *ledger, struct space *space);
/* In a forked child: forgets all that was, to be made anew. */
void ledger_fork(struct ledger *ledger);
/* A column for a new thread: a dead one's, a new one, or the proxy of the shared one. */
struct ledger_column *ledger_adopt(struct ledger *ledger);
void ledger_release(struct ledger *ledger, struct ledger_column *column);

/* Whether this context has a cell, or can have one. */
int ledger_has_room(struct ledger *ledger, struct ledger_column *column, uint32_t context);

void ledger_alloc_slow(struct ledger *ledger, struct ledger_column *column,
                       const struct ledger_event *event);
void ledger_free_slow(struct ledger *ledger, struct ledger_column *column,
                      const struct ledger_event *event);
void ledger_lifetime_slow(struct ledger *ledger, struct ledger_column *column,
                          struct memtrace_cell *cell, uint32_t bucket);

/* In a forked child: the blocks that it was born with have a column of their own, that of nobody.
 * NULL: no memory. */
struct ledger_column *ledger_add_column(struct ledger *ledger);
/* `count` blocks of `size` bytes in all were there from the start, and so at every moment since: at
 * the peak, too, whenever that was. For a column of nobody. */
void ledger_inherit(struct ledger *ledger, struct ledger_column *column, uint32_t context,
                    uint64_t size, uint64_t count);

/* `count` blocks, event->size bytes in all, for one that was picked of them. */
void ledger_alloc_many(struct ledger *ledger, struct ledger_column *column,
                       const struct ledger_event *event, uint64_t count);
void ledger_free_many(struct ledger *ledger, struct ledger_column *column,
                      const struct ledger_event *event, uint64_t count);

/* Part of a mapping is gone: its bytes, and the mapping itself if `is_last`. */
void ledger_free_part(struct ledger *ledger, struct ledger_column *column,
                      const struct ledger_event *event, int is_last);

INLINE struct memtrace_cell *ledger_cell(struct ledger_column *column, uint32_t context) {
    struct memtrace_cell *const *groups = column->group;
    struct memtrace_cell *group = LOAD_RELAXED(groups + (context >> MEMTRACE_GROUP_SHIFT));
    return LIKELY(group != NULL) ? group + (context & (MEMTRACE_GROUP_ITEMS - 1)) : NULL;
}

/* Before a cell changes: keep what it held at the peak, once a peak. */
INLINE void ledger_keep_peak(struct memtrace_cell *cell, const struct memtrace_header *header) {
    uint32_t epoch = LOAD_RELAXED(&header->peak_epoch);
    if (UNLIKELY(cell->peak_epoch != epoch)) {
        STORE_RELAXED(&cell->saved_live, (int64_t)(cell->alloc_bytes - cell->free_bytes));
        /* saved_live first: a kill in between, and a reader, find the present value. */
        STORE_RELEASE(&cell->peak_epoch, epoch);
    }
}

/* What lives less than a tick need not be counted by lifetime. */
INLINE void ledger_count_rest(struct memtrace_cell *cell) {
    if (UNLIKELY((cell->lifetimes & MEMTRACE_LIFETIME_REST) == 0)) {
        STORE_RELAXED(&cell->lifetimes, cell->lifetimes | MEMTRACE_LIFETIME_REST);
    }
}

/* An allocation, in the cell that counts it. */
INLINE void ledger_alloc_in(struct memtrace_cell *cell, const struct memtrace_header *header,
                            uint64_t size) {
    ledger_keep_peak(cell, header);
    counter_add(&cell->alloc_bytes, size);
    counter_add(&cell->alloc_count, 1);
    ledger_count_rest(cell);
}

INLINE void ledger_alloc(struct ledger *ledger, struct ledger_column *column,
                         const struct ledger_event *event) {
    struct memtrace_cell *cell = ledger_cell(column, event->context);
    if (UNLIKELY(cell == NULL)) {
        struct ledger_event copy = *event; /* so that the event itself can stay in registers */
        ledger_alloc_slow(ledger, column, &copy);
        return;
    }
    ledger_alloc_in(cell, ledger->space->header, event->size);
}

/* What counts another free of this cell; NULL: it has no record of lifetimes (in a child that
 * forked just now none has), or the count is full. */
INLINE uint32_t *ledger_bucket(const struct ledger *ledger, const struct memtrace_cell *cell,
                               uint32_t bucket) {
    uint32_t lifetimes = LOAD_RELAXED(&cell->lifetimes);
    uint32_t id = lifetimes & MEMTRACE_LIFETIME_RECORD;
    struct memtrace_lifetimes *leaf = LIKELY((int32_t)lifetimes >= 0 && id != 0)
                                          ? LOAD_RELAXED(&ledger->lifetimes[id >> 10])
                                          : NULL;
    if (UNLIKELY(leaf == NULL || leaf[id & 1023].bucket[bucket] == UINT32_MAX)) {
        return NULL;
    }
    return &leaf[id & 1023].bucket[bucket];
}

/* A free, in the cell that counts it, but not by its lifetime. */
INLINE void ledger_free_in(struct memtrace_cell *cell, const struct memtrace_header *header,
                           uint64_t size, int temporary) {
    ledger_keep_peak(cell, header);
    counter_add(&cell->free_bytes, size);
    counter_add(&cell->free_count, 1);
    counter_add(&cell->temporary_count, (uint64_t)temporary);
    ledger_count_rest(cell);
}

INLINE void ledger_free(struct ledger *ledger, struct ledger_column *column,
                        const struct ledger_event *event) {
    struct memtrace_cell *cell = ledger_cell(column, event->context);
    if (UNLIKELY(cell == NULL)) {
        struct ledger_event copy = *event;
        ledger_free_slow(ledger, column, &copy);
        return;
    }
    ledger_free_in(cell, ledger->space->header, event->size, event->temporary);
    if (event->lifetime_bucket != 0) {
        uint32_t *bucket = ledger_bucket(ledger, cell, event->lifetime_bucket);
        if (LIKELY(bucket != NULL)) {
            counter_increment(bucket);
        } else {
            ledger_lifetime_slow(ledger, column, cell, event->lifetime_bucket);
        }
    }
}

/* Bucket of a lifetime in ticks (format.h: struct memtrace_lifetimes). */
INLINE uint32_t ledger_lifetime_bucket(uint32_t ticks) {
    uint32_t bits = ticks == 0 ? 0 : 32u - (uint32_t)__builtin_clz(ticks);
    uint32_t bucket = (bits + 1) / 2;
    return bucket < MEMTRACE_LIFETIME_BUCKETS ? bucket : MEMTRACE_LIFETIME_BUCKETS - 1;
}

#endif
