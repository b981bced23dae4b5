/* SPDX-License-Identifier: MIT */
/* tally.c: adds up replayed events. See tally.h. */
#include "analyze/model/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 1 << MEMTRACE_THREAD_BITS };
#define MOST_UNITS 0x1p56 /* no whole file has that: a block cannot be so much smaller */

int tally_start(struct tally *tally, struct model *model) {
    memset(tally, 0, sizeof *tally);
    tally->model = model;
    tally->at_maximum = true;
    tally->epoch = 1;
    tally->cells = calloc(model->node_count, sizeof *tally->cells);
    return tally->cells != NULL ? 0 : -1;
}

void tally_end(struct tally *tally) {
    free(tally->cells);
    for (size_t i = 0; i < THREADS; i++) {
        free(tally->threads[i].freed_of);
    }
    memset(tally, 0, sizeof *tally);
}

uint64_t tally_sampled_units(const struct pairing_block *block) {
    double share;
    if (block->weight <= block->size || block->size == 0) {
        return TALLY_ONE;
    }
    share = (double)block->weight / (double)block->size * (double)TALLY_ONE;
    return share < MOST_UNITS ? (uint64_t)(share + 0.5) : (uint64_t)MOST_UNITS;
}

enum model_class tally_look_up(struct tally *tally, uint32_t context) {
    enum model_class class = contexts_class(tally->model->nodes[context].frame);
    tally->cells[context].class = (uint8_t)(class + 1);
    return class;
}

/* ---- The peak ---- */

static void keep_peak(const struct tally *tally, struct tally_cell *cell) {
    if (cell->epoch != tally->epoch) {
        cell->epoch = tally->epoch;
        cell->saved_live = cell->sum.alloc_bytes - cell->sum.free_bytes;
    }
}

static void grow(struct tally *tally, uint64_t bytes) {
    tally->live += bytes;
    if (tally->live > tally->maximum) {
        tally->maximum = tally->live;
        tally->maximum_ns = tally->now_ns;
        tally->variance.maximum = tally->variance.live;
        tally->at_maximum = true;
    }
}

/* Before the cell changes: an epoch that begins is of the state before. */
static void shrink(struct tally *tally, uint64_t bytes) {
    tally->live -= bytes;
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

static void vary(struct tally *tally, const struct pairing_block *block, double sign) {
    struct tally_cell *cell = &tally->cells[block->context];
    double variance = variance_of(block);
    double size = block->size != 0 ? (double)block->size : 1;
    cell->live_variance += sign * variance;
    tally->variance.live += sign * variance;
    if (sign > 0) {
        cell->total_variance += variance;
        tally->variance.total += variance;
        tally->variance.allocations += variance / (size * size);
        tally->model->recording.sampled = true;
    }
}

/* ---- Blocks ---- */

int64_t tally_alloc(struct tally *tally, const struct pairing_block *block, uint32_t thread,
                    bool inherited) {
    struct tally_cell *cell = &tally->cells[block->context];
    uint64_t bytes = tally_bytes(block);
    uint64_t units = tally_units(block);
    bool is_heap = tally_class(tally, block->context) == MODEL_HEAP;
    keep_peak(tally, cell);
    cell->sum.alloc_bytes += bytes;
    cell->sum.alloc_count += units;
    if (!is_heap) {
        return 0;
    }
    if (block->weight != 0) {
        vary(tally, block, 1);
    }
    grow(tally, bytes);
    tally->alloc_units += units;
    tally->alloc_bytes += bytes;
    if (!inherited && thread < THREADS) {
        tally->threads[thread].alloc_units += units;
        tally->threads[thread].alloc_bytes += bytes;
    }
    return (int64_t)bytes;
}

static void add_lifetime(struct tally *tally, struct tally_cell *cell, uint32_t ticks,
                         uint64_t units) {
    uint64_t *buckets = cell->sum.lifetimes != 0 ? contexts_buckets_of(tally->model, &cell->sum)
                                                 : contexts_buckets(tally->model, &cell->sum);
    if (buckets == NULL) {
        tally->out_of_memory = true;
        return;
    }
    buckets[contexts_bucket(ticks)] += units;
}

/* The place of an owner among those of whom a thread freed blocks. NULL: out of memory. */
static struct model_foreign *foreign_of(struct tally_thread *thread, uint32_t freer,
                                        uint32_t owner) {
    size_t low = 0;
    size_t high = thread->freed_of_count;
    struct model_foreign *grown;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (thread->freed_of[middle].owner < owner) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < thread->freed_of_count && thread->freed_of[low].owner == owner) {
        return &thread->freed_of[low];
    }
    grown = reallocarray(thread->freed_of, thread->freed_of_count + 1, sizeof *grown);
    if (grown == NULL) {
        return NULL;
    }
    thread->freed_of = grown;
    memmove(&grown[low + 1], &grown[low], (thread->freed_of_count - low) * sizeof *grown);
    grown[low] = (struct model_foreign){.freer = freer, .owner = owner};
    thread->freed_of_count++;
    return &grown[low];
}

static void count_foreign(struct tally *tally, uint32_t freer, uint32_t owner, uint64_t units,
                          uint64_t bytes) {
    struct tally_thread *thread = &tally->threads[freer];
    struct model_foreign *foreign = foreign_of(thread, freer, owner);
    thread->foreign_units += units;
    thread->foreign_bytes += bytes;
    if (foreign == NULL) {
        tally->out_of_memory = true;
        return;
    }
    foreign->blocks += units;
    foreign->bytes += bytes;
}

int64_t tally_free(struct tally *tally, const struct pairing_block *block, uint32_t owner,
                   const struct pairing_end *end, bool temporary) {
    struct tally_cell *cell = &tally->cells[block->context];
    uint64_t bytes = tally_bytes(block);
    uint64_t units = tally_units(block);
    bool is_heap = tally_class(tally, block->context) == MODEL_HEAP;
    if (is_heap) {
        shrink(tally, bytes);
    }
    keep_peak(tally, cell);
    cell->sum.free_bytes += bytes;
    cell->sum.free_count += units;
    add_lifetime(tally, cell, end->tick > block->tick ? end->tick - block->tick : 0, units);
    if (!is_heap) {
        return 0;
    }
    cell->sum.temporary += temporary ? units : 0;
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
    return -(int64_t)bytes;
}

/* ---- Mappings, and what was left out ---- */

void tally_map(struct tally *tally, uint32_t context, uint64_t bytes) {
    struct tally_cell *cell = &tally->cells[context];
    keep_peak(tally, cell);
    cell->sum.alloc_bytes += bytes;
    cell->sum.alloc_count += TALLY_ONE;
}

void tally_unmap(struct tally *tally, uint32_t context, uint64_t bytes, bool is_last) {
    struct tally_cell *cell = &tally->cells[context];
    keep_peak(tally, cell);
    cell->sum.free_bytes += bytes;
    cell->sum.free_count += is_last ? TALLY_ONE : 0;
}

void tally_culled(struct tally *tally, const struct memtrace_culled *culled) {
    struct tally_cell *cell = &tally->cells[culled->context];
    uint64_t units = culled->count * TALLY_ONE;
    cell->sum.alloc_bytes += culled->bytes;
    cell->sum.alloc_count += units;
    cell->sum.free_bytes += culled->bytes;
    cell->sum.free_count += units;
    add_lifetime(tally, cell, 0, units);
    if (tally_class(tally, culled->context) == MODEL_HEAP && culled->thread < THREADS) {
        struct tally_thread *thread = &tally->threads[culled->thread];
        thread->alloc_units += units;
        thread->alloc_bytes += culled->bytes;
        thread->free_units += units;
        thread->free_bytes += culled->bytes;
    }
}

/* ---- The end ---- */

static uint64_t whole(uint64_t units) {
    return (units + TALLY_ONE / 2) / TALLY_ONE;
}

static double root(double variance) {
    return variance > 0 ? sqrt(variance) : 0;
}

static int make_contexts(struct tally *tally) {
    struct model *model = tally->model;
    struct sum *sums = calloc(model->node_count, sizeof *sums);
    int result;
    if (sums == NULL) {
        return -1;
    }
    for (size_t id = 1; id < model->node_count; id++) {
        const struct tally_cell *cell = &tally->cells[id];
        if (cell->class == 0) {
            continue; /* most: inner nodes, whose sums need not be touched */
        }
        sums[id] = cell->sum;
        sums[id].alloc_count = whole(cell->sum.alloc_count);
        sums[id].free_count = whole(cell->sum.free_count);
        sums[id].temporary = whole(cell->sum.temporary);
        sums[id].peak_bytes = !tally->at_maximum && cell->epoch == tally->epoch
                                  ? cell->saved_live
                                  : cell->sum.alloc_bytes - cell->sum.free_bytes;
    }
    result = contexts_make(model, sums);
    free(sums);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct tally_cell *cell = &tally->cells[model->contexts[i].id];
        model->contexts[i].total_error_bytes = root(cell->total_variance);
        model->contexts[i].live_error_bytes = root(cell->live_variance);
    }
    return result;
}

static int make_foreign(struct tally *tally) {
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t k = 0; k < tally->threads[i].freed_of_count; k++) {
            struct model_foreign foreign = tally->threads[i].freed_of[k];
            foreign.blocks = whole(foreign.blocks);
            if (census_take_foreign(tally->model, foreign) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

int tally_finish(struct tally *tally) {
    struct model *model = tally->model;
    model->recording.errors = (struct model_errors){
        .total_bytes = root(tally->variance.total),
        .allocations = root(tally->variance.allocations),
        .live_bytes = root(tally->variance.live),
        .maximum_bytes = root(tally->variance.maximum),
    };
    for (size_t i = 0; i < model->lifetime_count * MEMTRACE_LIFETIME_BUCKETS; i++) {
        model->lifetimes[i] = whole(model->lifetimes[i]);
    }
    return tally->out_of_memory || make_contexts(tally) != 0 || make_foreign(tally) != 0 ? -1 : 0;
}
