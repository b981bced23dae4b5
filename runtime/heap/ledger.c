/* SPDX-License-Identifier: MIT */
/* ledger.c: opening leaves, adopting columns, the shared column. See ledger.h. */
#include "runtime/heap/ledger.h"

#include "runtime/base/limits.h"
#include "runtime/base/sys.h"

enum {
    FIRST_COLUMNS = 2,
    PRIVATE_COLUMNS = 3, /* a light child's: shared, its thread's, of what it was born with */
    COLUMNS_AT_ONCE = 8,
    LIMIT_PART = 4
};

static struct ledger_column *map_columns(uint32_t count) {
    size_t bytes = count * sizeof(struct ledger_column);
    struct ledger_column *columns =
        limits_allow(LIMITS_MEMORY, bytes, LIMIT_PART) ? sys_map(bytes) : NULL;
    if (columns != NULL) {
        sys_no_huge_pages(columns, bytes); /* few of their pages are touched */
    }
    return columns;
}

static struct ledger_column *take_fresh(struct ledger *ledger) {
    struct ledger_column *column = NULL;
    if (sys_take(&ledger->lock)) {
        if (ledger->fresh_count == 0) {
            /* The first are for what has one thread; where memory is limited none is mapped in
             * advance. */
            uint32_t count =
                ledger->space->is_private             ? PRIVATE_COLUMNS
                : LOAD_RELAXED(&ledger->columns) == 0 ? FIRST_COLUMNS
                : limits_memory() / 64 >= COLUMNS_AT_ONCE * sizeof(struct ledger_column)
                    ? COLUMNS_AT_ONCE
                    : 1;
            ledger->fresh = map_columns(count);
            ledger->fresh_count = ledger->fresh != NULL ? count : 0;
        }
        if (ledger->fresh_count != 0) {
            column = &ledger->fresh[--ledger->fresh_count];
        }
        trylock_release(&ledger->lock);
    }
    return column != NULL ? column : map_columns(1);
}

struct ledger_column *ledger_add_column(struct ledger *ledger) {
    struct ledger_column *column = take_fresh(ledger);
    if (column != NULL) {
        column->number = __atomic_fetch_add(&ledger->columns, 1, __ATOMIC_RELAXED);
        column->next_made = LOAD_RELAXED(&ledger->made);
        while (!__atomic_compare_exchange_n(&ledger->made, &column->next_made, column, 1,
                                            __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        }
    }
    return column;
}

/* In place: it is too large for the stack of a thread or of a signal handler that forked. */
void ledger_fork(struct ledger *ledger) {
    uint32_t leaves = sizeof ledger->lifetimes / sizeof ledger->lifetimes[0];
    uint32_t used = (ledger->lifetimes_taken + MEMTRACE_LEAF_ITEMS - 1) / MEMTRACE_LEAF_ITEMS;
    leaves = used < leaves ? used : leaves;
    __builtin_memset(ledger->lifetimes, 0, leaves * sizeof ledger->lifetimes[0]);
    ledger->lifetimes_taken = 0;
    ledger->columns = 0;
    ledger->private_pages = 0;
    ledger->made = NULL;
    ledger->free = NULL;
    ledger->lock.held = 0;
}

int ledger_init(struct ledger *ledger, struct space *space) {
    ledger->space = space;
    ledger->shared = ledger_add_column(ledger);
    if (ledger->proxy == NULL) { /* in a forked child it is there, as empty as ever */
        ledger->proxy = sys_map(sizeof *ledger->proxy);
    }
    return ledger->shared != NULL && ledger->proxy != NULL ? 0 : -1;
}

struct ledger_column *ledger_adopt(struct ledger *ledger) {
    struct ledger_column *column = NULL;
    if (sys_take(&ledger->lock)) {
        column = ledger->free;
        if (column != NULL) {
            ledger->free = column->next_free;
        }
        trylock_release(&ledger->lock);
    }
    if (column == NULL) {
        column = ledger_add_column(ledger);
    }
    return column != NULL ? column : ledger->proxy;
}

void ledger_release(struct ledger *ledger, struct ledger_column *column) {
    if (column->number == 0) {
        return;
    }
    if (!sys_take(&ledger->lock)) {
        return; /* rather an idle column than a longer wait */
    }
    column->next_free = ledger->free;
    ledger->free = column;
    trylock_release(&ledger->lock);
}

/* The cells of `context` and those beside it. */
static void open_group(struct ledger *ledger, struct ledger_column *column, uint32_t context) {
    uint32_t index = context >> MEMTRACE_GROUP_SHIFT;
    void *segment =
        space_segment(ledger->space, MEMTRACE_SEGMENT_CELLS, column->number, index,
                      sizeof(struct memtrace_cell), MEMTRACE_GROUP_FIRST + MEMTRACE_GROUP_ITEMS);
    if (segment != NULL) {
        space_publish(segment);
        column->groups++;
        STORE_RELEASE(&column->group[index],
                      (struct memtrace_cell *)segment + MEMTRACE_GROUP_FIRST);
    }
}

/* Of all contexts of its leaf. Those that are open already stay where they are: of the shared
 * column another thread may have opened them just now. */
static void open_leaf(struct ledger *ledger, struct ledger_column *column, uint32_t context) {
    uint32_t index = context / MEMTRACE_LEAF_ITEMS;
    void *segment = space_segment(ledger->space, MEMTRACE_SEGMENT_LEDGER, column->number, index,
                                  sizeof(struct memtrace_cell), MEMTRACE_LEAF_ITEMS);
    if (segment == NULL) {
        return;
    }
    space_publish(segment);
    for (uint32_t i = 0; i < LEDGER_GROUPS_PER_LEAF; i++) {
        struct memtrace_cell *none = NULL;
        __atomic_compare_exchange_n(&column->group[index * LEDGER_GROUPS_PER_LEAF + i], &none,
                                    (struct memtrace_cell *)segment + i * MEMTRACE_GROUP_ITEMS, 0,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

/* 1: so many pages are within the budget of all threads but the first one, and taken from it. */
static int take_private(struct ledger *ledger, uint32_t pages) {
    uint32_t most = LEDGER_PRIVATE_BYTES / MEMTRACE_PAGE_SIZE;
    if (LOAD_RELAXED(&ledger->private_pages) + pages > most) {
        return 0;
    }
    __atomic_fetch_add(&ledger->private_pages, pages, __ATOMIC_RELAXED);
    return 1;
}

/* Of a thread's own column. */
static void open_private(struct ledger *ledger, struct ledger_column *column, uint32_t context) {
    if (column->number == 1 && !ledger->space->is_private) {
        open_leaf(ledger, column, context);
    } else if (column->groups < LEDGER_FEW_GROUPS) {
        if (take_private(ledger, 1)) {
            open_group(ledger, column, context);
        }
    } else if (take_private(ledger, LEDGER_LEAF_PAGES)) {
        open_leaf(ledger, column, context);
    }
}

/* The cell to write, opened if need be; *is_shared tells how. NULL: no room. */
static struct memtrace_cell *open_cell(struct ledger *ledger, struct ledger_column *column,
                                       uint32_t context, int *is_shared) {
    struct memtrace_cell *cell;
    *is_shared = 0;
    if (column->number != 0) {
        open_private(ledger, column, context);
        cell = ledger_cell(column, context);
        if (cell != NULL) {
            return cell;
        }
    }
    *is_shared = 1;
    if (ledger_cell(ledger->shared, context) == NULL) {
        open_leaf(ledger, ledger->shared, context);
    }
    return ledger_cell(ledger->shared, context);
}

/* The same. Where there is no room the event is lost. */
static struct memtrace_cell *cell_for(struct ledger *ledger, struct ledger_column *column,
                                      uint32_t context, int *is_shared) {
    struct memtrace_cell *cell = open_cell(ledger, column, context, is_shared);
    if (cell == NULL) {
        space_lost(ledger->space, MEMTRACE_LOST_EVENTS, 1);
    }
    return cell;
}

COLD int ledger_has_room(struct ledger *ledger, struct ledger_column *column, uint32_t context) {
    int is_shared;
    return ledger_cell(column, context) != NULL ||
           open_cell(ledger, column, context, &is_shared) != NULL;
}

static void ledger_add(uint64_t *counter, uint64_t value) {
    __atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

COLD void ledger_alloc_slow(struct ledger *ledger, struct ledger_column *column,
                            const struct ledger_event *event) {
    int is_shared;
    struct memtrace_cell *cell = cell_for(ledger, column, event->context, &is_shared);
    if (cell == NULL) {
        return;
    }
    if (!is_shared) {
        ledger_alloc(ledger, column, event);
        return;
    }
    ledger_keep_peak(cell, ledger->space->header);
    ledger_add(&cell->alloc_bytes, event->size);
    ledger_add(&cell->alloc_count, 1);
}

COLD void ledger_free_slow(struct ledger *ledger, struct ledger_column *column,
                           const struct ledger_event *event) {
    int is_shared;
    struct memtrace_cell *cell = cell_for(ledger, column, event->context, &is_shared);
    if (cell == NULL) {
        return;
    }
    if (!is_shared) {
        ledger_free(ledger, column, event);
        return;
    }
    ledger_keep_peak(cell, ledger->space->header);
    ledger_add(&cell->free_bytes, event->size);
    ledger_add(&cell->free_count, 1);
    ledger_add(&cell->temporary_count, (uint64_t)event->temporary);
}

/* For what is rare, with atomics also in a column of one's own. NULL: no room. */
static struct memtrace_cell *any_cell(struct ledger *ledger, struct ledger_column *column,
                                      uint32_t context) {
    int is_shared;
    struct memtrace_cell *cell = ledger_cell(column, context);
    cell = cell != NULL ? cell : cell_for(ledger, column, context, &is_shared);
    if (cell != NULL) {
        ledger_keep_peak(cell, ledger->space->header);
    }
    return cell;
}

/* From here on they are not known: there is no such record. */
static void forget_lifetimes(struct memtrace_cell *cell) {
    STORE_RELAXED(&cell->lifetimes, MEMTRACE_LIFETIME_REST | MEMTRACE_LIFETIME_RECORD);
}

COLD void ledger_free_part(struct ledger *ledger, struct ledger_column *column,
                           const struct ledger_event *event, int is_last) {
    struct memtrace_cell *cell = any_cell(ledger, column, event->context);
    if (cell != NULL) {
        ledger_add(&cell->free_bytes, event->size);
        ledger_add(&cell->free_count, (uint64_t)(is_last != 0));
        forget_lifetimes(cell);
    }
}

COLD void ledger_alloc_many(struct ledger *ledger, struct ledger_column *column,
                            const struct ledger_event *event, uint64_t count) {
    struct memtrace_cell *cell = any_cell(ledger, column, event->context);
    if (cell != NULL) {
        ledger_add(&cell->alloc_bytes, event->size);
        ledger_add(&cell->alloc_count, count);
    }
}

void ledger_inherit(struct ledger *ledger, struct ledger_column *column, uint32_t context,
                    uint64_t size, uint64_t count) {
    struct memtrace_cell *cell = ledger_cell(column, context);
    if (cell == NULL) {
        if (column->groups < LEDGER_FEW_GROUPS) {
            open_group(ledger, column, context);
        } else {
            open_leaf(ledger, column, context);
        }
        cell = ledger_cell(column, context);
    }
    if (cell == NULL) {
        space_lost(ledger->space, MEMTRACE_LOST_EVENTS, count);
        return;
    }
    counter_add(&cell->alloc_bytes, size);
    counter_add(&cell->alloc_count, count);
}

/* --- lifetimes of a tick or more: nothing for a first free, a record from the second on ------- */

/* Another run of ids for this column. Place 0 of a leaf is under its header. */
static int take_lifetimes(struct ledger *ledger, struct ledger_column *column) {
    uint32_t first =
        __atomic_fetch_add(&ledger->lifetimes_taken, LEDGER_LIFETIMES_RUN, __ATOMIC_RELAXED);
    uint32_t index = first / MEMTRACE_LEAF_ITEMS;
    if (index >= sizeof ledger->lifetimes / sizeof ledger->lifetimes[0]) {
        __atomic_fetch_sub(&ledger->lifetimes_taken, LEDGER_LIFETIMES_RUN, __ATOMIC_RELAXED);
        return -1;
    }
    if (space_leaf(ledger->space, &ledger->lifetimes[index], MEMTRACE_SEGMENT_LIFETIMES, index,
                   sizeof(struct memtrace_lifetimes), MEMTRACE_LEAF_ITEMS) == NULL) {
        return -1;
    }
    column->lifetimes_next = first + (first % MEMTRACE_LEAF_ITEMS == 0);
    column->lifetimes_end = first + LEDGER_LIFETIMES_RUN;
    return 0;
}

COLD void ledger_lifetime_slow(struct ledger *ledger, struct ledger_column *column,
                               struct memtrace_cell *cell, uint32_t bucket) {
    const uint32_t single = MEMTRACE_LIFETIME_SINGLE | MEMTRACE_LIFETIME_REST;
    uint32_t lifetimes = cell->lifetimes;
    struct memtrace_lifetimes *leaf;
    uint32_t *record;
    uint32_t id;
    if (lifetimes == MEMTRACE_LIFETIME_REST) {
        STORE_RELAXED(&cell->lifetimes, single | bucket);
        return;
    }
    if ((lifetimes & single) != single) {
        return; /* the count is full, or there is no record, nor will be */
    }
    if (column->lifetimes_next == column->lifetimes_end && take_lifetimes(ledger, column) != 0) {
        forget_lifetimes(cell);
        return;
    }
    id = column->lifetimes_next++;
    leaf = ledger->lifetimes[id >> 10];
    if (leaf == NULL) {
        return; /* a fork came in between, in a handler: the child has none yet */
    }
    record = leaf[id & 1023].bucket;
    record[lifetimes & (MEMTRACE_LIFETIME_BUCKETS - 1)]++;
    record[bucket]++;
    STORE_RELEASE(&cell->lifetimes, MEMTRACE_LIFETIME_REST | id);
}

COLD void ledger_free_many(struct ledger *ledger, struct ledger_column *column,
                           const struct ledger_event *event, uint64_t count) {
    struct memtrace_cell *cell = any_cell(ledger, column, event->context);
    if (cell == NULL) {
        return;
    }
    ledger_add(&cell->free_bytes, event->size);
    ledger_add(&cell->free_count, count);
    ledger_add(&cell->temporary_count, event->temporary ? count : 0);
    if (ledger_cell(column, event->context) == NULL) {
        return; /* nobody's lifetimes are kept in the shared column */
    }
    ledger_count_rest(cell);
    while (event->lifetime_bucket != 0 && count != 0) {
        uint32_t *bucket = ledger_bucket(ledger, cell, event->lifetime_bucket);
        uint32_t before = cell->lifetimes;
        if (bucket != NULL) {
            uint64_t sum = *bucket + count;
            STORE_RELAXED(bucket, sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX);
            return;
        }
        ledger_lifetime_slow(ledger, column, cell, event->lifetime_bucket);
        count--;
        if (cell->lifetimes == before) {
            return; /* no room */
        }
    }
}
