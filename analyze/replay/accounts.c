/* SPDX-License-Identifier: MIT */
/* accounts.c: adds up replayed events. See accounts.h. */
#include "analyze/replay/accounts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 1 << MEMTRACE_THREAD_BITS };
#define MOST_UNITS 0x1p56 /* no whole file has that: a block cannot be so much smaller */

int accounts_start(struct accounts *tally, const struct model_node *nodes, size_t node_count) {
    memset(tally, 0, sizeof *tally);
    tally->nodes = nodes;
    tally->node_count = node_count;
    tally->at_maximum = true;
    tally->epoch = 1;
    tally->cells = calloc(node_count, sizeof *tally->cells);
    tally->touched = calloc(node_count, sizeof *tally->touched);
    return tally->cells != NULL && tally->touched != NULL ? 0 : -1;
}

void accounts_end(struct accounts *tally) {
    free(tally->cells);
    free(tally->variances);
    free(tally->touched);
    free(tally->lifetimes);
    foreign_free(&tally->foreign);
    memset(tally, 0, sizeof *tally);
}

uint64_t accounts_sampled_units(const struct pairing_block *block) {
    double share;
    if (block->weight <= block->size || block->size == 0) {
        return TALLY_ONE;
    }
    share = (double)block->weight / (double)block->size * (double)TALLY_ONE;
    return share < MOST_UNITS ? (uint64_t)(share + 0.5) : (uint64_t)MOST_UNITS;
}

enum model_class accounts_look_up(struct accounts *tally, uint32_t context) {
    enum model_class class = contexts_class(tally->nodes[context].frame);
    tally->cells[context].class = (uint8_t)(class + 1);
    return class;
}

/* ---- The peak ---- */

static void keep_peak(struct accounts *tally, struct accounts_cell *cell) {
    if (cell->epoch != tally->epoch) {
        if (cell->epoch == 0) {
            tally->touched[tally->touched_count++] = (uint32_t)(cell - tally->cells);
        }
        cell->epoch = tally->epoch;
        cell->saved = cell->alloc_bytes - cell->free_bytes;
    }
}

static void grow(struct accounts *tally, uint64_t bytes) {
    tally->live = (int64_t)((uint64_t)tally->live + bytes);
    if (tally->live > tally->maximum) {
        tally->maximum = tally->live;
        tally->maximum_ns = tally->now_ns;
        tally->variance.maximum = tally->variance.live;
        tally->at_maximum = true;
    }
    if (tally->live > tally->crest.live) {
        tally->crest = (struct accounts_crest){tally->live, tally->now_ns, tally->alloc_units,
                                               tally->alloc_bytes};
    }
}

/* Before the cell changes: an epoch that begins is of the state before. */
static void shrink(struct accounts *tally, uint64_t bytes) {
    tally->live = (int64_t)((uint64_t)tally->live - bytes);
    if (tally->at_maximum && bytes != 0) {
        tally->at_maximum = false;
        tally->epoch++;
    }
}

/* ---- Sampling ---- */

/* What a sampled block of size s with weight w adds to the variance of a sum of bytes: it was taken
 * with probability s / w, so w (w - s). */
static double variance_of(const struct pairing_block *block) {
    double weight = (double)block->weight;
    return block->weight > block->size ? weight * (weight - (double)block->size) : 0;
}

static void vary(struct accounts *tally, const struct pairing_block *block, double sign) {
    double variance = variance_of(block);
    double size = block->size != 0 ? (double)block->size : 1;
    struct accounts_variance *cell;
    if (tally->variances == NULL) {
        tally->variances = calloc(tally->node_count, sizeof *tally->variances);
        if (tally->variances == NULL) {
            tally->out_of_memory = true;
            return;
        }
    }
    tally->is_sampled = true;
    cell = &tally->variances[block->context];
    cell->live += sign * variance;
    tally->variance.live += sign * variance;
    if (sign > 0) {
        cell->total += variance;
        tally->variance.total += variance;
        tally->variance.allocations += variance / (size * size);
    }
}

/* ---- Blocks ---- */

int64_t accounts_alloc(struct accounts *tally, const struct pairing_block *block, uint32_t thread,
                       bool inherited) {
    struct accounts_cell *cell = &tally->cells[block->context];
    uint64_t bytes = accounts_bytes(block);
    uint64_t units = accounts_units(block);
    bool is_heap = accounts_class(tally, block->context) == MODEL_HEAP;
    keep_peak(tally, cell);
    cell->alloc_bytes += bytes;
    cell->alloc_units += units;
    if (!is_heap) {
        return 0;
    }
    if (block->weight != 0) {
        vary(tally, block, 1);
    }
    tally->alloc_units += units;
    tally->alloc_bytes += bytes;
    grow(tally, bytes);
    if (!inherited && thread < THREADS) {
        tally->threads[thread].alloc_units += units;
        tally->threads[thread].alloc_bytes += bytes;
    }
    return (int64_t)bytes;
}

/* New buckets for a cell. 0, or -1: out of memory. */
static int add_buckets(struct accounts *tally, struct accounts_cell *cell) {
    enum { FIRST = 256 };
    if (tally->lifetime_count == tally->lifetime_capacity) {
        size_t capacity = tally->lifetime_capacity != 0 ? tally->lifetime_capacity * 2 : FIRST;
        void *grown = reallocarray(tally->lifetimes, capacity, sizeof *tally->lifetimes);
        if (grown == NULL) {
            return -1;
        }
        tally->lifetimes = grown;
        tally->lifetime_capacity = capacity;
    }
    memset(tally->lifetimes[tally->lifetime_count], 0, sizeof *tally->lifetimes);
    cell->lifetimes = (uint32_t)++tally->lifetime_count;
    return 0;
}

static void add_lifetime(struct accounts *tally, struct accounts_cell *cell, uint32_t ticks,
                         uint64_t units) {
    if (cell->lifetimes == 0 && add_buckets(tally, cell) != 0) {
        tally->out_of_memory = true;
        return;
    }
    tally->lifetimes[cell->lifetimes - 1][contexts_bucket(ticks)] += units;
}

static void count_foreign(struct accounts *tally, uint32_t freer, uint32_t owner, uint64_t units,
                          uint64_t bytes) {
    if (foreign_add(&tally->foreign,
                    (struct model_foreign){
                        .freer = freer, .owner = owner, .blocks = units, .bytes = bytes}) != 0) {
        tally->out_of_memory = true;
    }
}

int64_t accounts_free(struct accounts *tally, const struct pairing_block *block, uint32_t owner,
                      const struct pairing_end *end, bool temporary) {
    struct accounts_cell *cell = &tally->cells[block->context];
    uint64_t bytes = accounts_bytes(block);
    uint64_t units = accounts_units(block);
    bool is_heap = accounts_class(tally, block->context) == MODEL_HEAP;
    if (is_heap) {
        shrink(tally, bytes);
    }
    keep_peak(tally, cell);
    cell->free_bytes += bytes;
    cell->free_units += units;
    add_lifetime(tally, cell, end->tick > block->tick ? end->tick - block->tick : 0, units);
    if (!is_heap) {
        return 0;
    }
    cell->temporary += temporary ? units : 0;
    if (block->weight != 0) {
        vary(tally, block, -1);
    }
    if (end->thread < THREADS) {
        tally->threads[end->thread].free_units += units;
        tally->threads[end->thread].free_bytes += bytes;
        if (end->thread != owner) {
            count_foreign(tally, end->thread, owner, units, bytes);
        }
    }
    return wrap_subtract(0, (int64_t)bytes);
}

/* ---- Mappings, and what was left out ---- */

void accounts_map(struct accounts *tally, uint32_t context, uint64_t bytes) {
    struct accounts_cell *cell = &tally->cells[context];
    keep_peak(tally, cell);
    cell->alloc_bytes += bytes;
    cell->alloc_units += TALLY_ONE;
}

void accounts_unmap(struct accounts *tally, uint32_t context, uint64_t bytes, bool is_last) {
    struct accounts_cell *cell = &tally->cells[context];
    keep_peak(tally, cell);
    cell->free_bytes += bytes;
    cell->free_units += is_last ? TALLY_ONE : 0;
}

void accounts_culled(struct accounts *tally, const struct memtrace_culled *culled) {
    struct accounts_cell *cell = &tally->cells[culled->context];
    uint64_t units = culled->count * TALLY_ONE;
    keep_peak(tally, cell);
    cell->alloc_bytes += culled->bytes;
    cell->alloc_units += units;
    cell->free_bytes += culled->bytes;
    cell->free_units += units;
    cell->temporary += (uint64_t)culled->temporary * TALLY_ONE;
    add_lifetime(tally, cell, 0, units);
    if (accounts_class(tally, culled->context) == MODEL_HEAP && culled->thread < THREADS) {
        struct accounts_thread *thread = &tally->threads[culled->thread];
        thread->alloc_units += units;
        thread->alloc_bytes += culled->bytes;
        thread->free_units += units;
        thread->free_bytes += culled->bytes;
    }
}

/* ---- The end of a slice ---- */

static int by_number(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* A few are sorted; where there are many it is faster to look at all cells. */
static void sort_touched(struct accounts *tally) {
    enum { MANY = 16 };
    if (tally->touched_count < tally->node_count / MANY) {
        qsort(tally->touched, tally->touched_count, sizeof *tally->touched, by_number);
        return;
    }
    tally->touched_count = 0;
    for (size_t id = 0; id < tally->node_count; id++) {
        if (tally->cells[id].epoch != 0) {
            tally->touched[tally->touched_count++] = (uint32_t)id;
        }
    }
}

static void cut_context(struct accounts *tally, struct slice_writer *writer, uint32_t id) {
    struct accounts_cell *cell = &tally->cells[id];
    struct slice_context context = {
        .id = id,
        .alloc_bytes = cell->alloc_bytes,
        .alloc_units = cell->alloc_units,
        .free_bytes = cell->free_bytes,
        .free_units = cell->free_units,
        .temporary = cell->temporary,
        .peak = !tally->at_maximum && cell->epoch == tally->epoch
                    ? cell->saved
                    : cell->alloc_bytes - cell->free_bytes,
    };
    if (cell->lifetimes != 0) {
        memcpy(context.lifetimes, tally->lifetimes[cell->lifetimes - 1], sizeof context.lifetimes);
    }
    if (tally->variances != NULL) {
        context.total_variance = tally->variances[id].total;
        context.live_variance = tally->variances[id].live;
        tally->variances[id] = (struct accounts_variance){0};
    }
    slice_put_context(writer, &context);
    *cell = (struct accounts_cell){.class = cell->class};
}

/* foreign: the place of the thread's first pair; set to that of the next thread's. */
static void cut_thread(struct accounts *tally, struct slice_writer *writer, uint32_t id,
                       size_t *foreign) {
    struct accounts_thread *thread = &tally->threads[id];
    const struct slice_thread costs = {.id = id,
                                       .alloc_units = thread->alloc_units,
                                       .alloc_bytes = thread->alloc_bytes,
                                       .free_units = thread->free_units,
                                       .free_bytes = thread->free_bytes};
    if (slice_put_thread_of(writer, costs, &tally->foreign, foreign)) {
        *thread = (struct accounts_thread){0};
    }
}

int accounts_cut(struct accounts *tally, struct slice *slice) {
    struct slice_writer writer = {.slice = slice};
    size_t foreign = 0;
    *slice = (struct slice){.change = tally->live,
                            .highest = tally->maximum,
                            .maximum_ns = tally->maximum_ns,
                            .at_maximum = tally->at_maximum,
                            .variance = tally->variance};
    sort_touched(tally);
    for (size_t i = 0; i < tally->touched_count; i++) {
        cut_context(tally, &writer, tally->touched[i]);
    }
    foreign_sort(&tally->foreign);
    for (uint32_t id = 0; id < THREADS; id++) {
        cut_thread(tally, &writer, id, &foreign);
    }
    foreign_clear(&tally->foreign);
    tally->touched_count = 0;
    tally->lifetime_count = 0;
    tally->crest.live = wrap_subtract(tally->crest.live, tally->live);
    tally->live = tally->maximum = 0;
    tally->maximum_ns = 0;
    tally->at_maximum = true;
    tally->epoch++;
    tally->variance = (struct slice_variance){0};
    return slice_finish(&writer) != 0 || tally->out_of_memory ? -1 : 0;
}
