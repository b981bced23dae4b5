/* SPDX-License-Identifier: MIT */
/* accounts.c: adds up replayed events. See accounts.h. */
#include "analyze/replay/accounts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_UNITS 0x1p56 /* no whole file has that: a block cannot be so much smaller */

void accounts_start(struct accounts *accounts, const struct model_node *nodes, size_t node_count) {
    *accounts = (struct accounts){.nodes = nodes,
                                  .node_count = node_count,
                                  .cells = job_array(node_count, sizeof *accounts->cells),
                                  .touched = job_array(node_count, sizeof *accounts->touched),
                                  .at_maximum = true,
                                  .epoch = 1};
}

void accounts_end(struct accounts *accounts) {
    job_release(accounts->cells);
    job_release(accounts->variances);
    job_release(accounts->touched);
    job_release(accounts->lifetimes);
    foreign_free(&accounts->foreign);
    memset(accounts, 0, sizeof *accounts);
}

uint64_t accounts_sampled_units(struct pairing_block block) {
    double share;
    if (block.weight <= block.size || block.size == 0) {
        return ACCOUNTS_ONE;
    }
    share = (double)block.weight / (double)block.size * (double)ACCOUNTS_ONE;
    return share < MOST_UNITS ? (uint64_t)(share + 0.5) : (uint64_t)MOST_UNITS;
}

enum model_class accounts_look_up(struct accounts *accounts, uint32_t context) {
    enum model_class class = contexts_class(accounts->nodes[context].frame);
    accounts->cells[context].class = (uint8_t)(class + 1);
    return class;
}

/* ---- Sampling ---- */

void accounts_vary(struct accounts *accounts, struct pairing_block block, double sign) {
    double variance = accounts_variance_of(block.size, block.weight);
    double size = block.size != 0 ? (double)block.size : 1;
    struct accounts_variance *cell;
    if (accounts->variances == NULL) {
        accounts->variances = job_array(accounts->node_count, sizeof *accounts->variances);
    }
    accounts->is_sampled = true;
    cell = &accounts->variances[block.context];
    cell->live += sign * variance;
    accounts->variance.live += sign * variance;
    if (sign > 0) {
        cell->total += variance;
        accounts->variance.total += variance;
        accounts->variance.allocations += variance / (size * size);
    }
}

/* ---- Blocks ---- */

void accounts_add_buckets(struct accounts *accounts, struct accounts_cell *cell) {
    job_grow(&accounts->lifetimes, &accounts->lifetime_capacity, accounts->lifetime_count,
             sizeof *accounts->lifetimes);
    memset(accounts->lifetimes[accounts->lifetime_count], 0, sizeof *accounts->lifetimes);
    cell->lifetimes = (uint32_t)++accounts->lifetime_count;
}

void accounts_count_foreign(struct accounts *accounts, uint32_t freer, uint32_t owner,
                            uint64_t units, uint64_t bytes) {
    foreign_add(
        &accounts->foreign,
        (struct model_foreign){.freer = freer, .owner = owner, .blocks = units, .bytes = bytes});
}

/* ---- The heap from before ---- */

int64_t accounts_before(struct accounts *accounts, uint32_t context, uint64_t bytes) {
    struct accounts_cell *cell = &accounts->cells[context];
    accounts_keep_peak(accounts, cell);
    cell->alloc_bytes += bytes;
    cell->alloc_units += ACCOUNTS_ONE;
    accounts_grow(accounts, bytes);
    return (int64_t)bytes;
}

int64_t accounts_before_freed(struct accounts *accounts, uint32_t context, uint64_t bytes,
                              uint32_t thread) {
    struct accounts_cell *cell = &accounts->cells[context];
    accounts_shrink(accounts, bytes);
    accounts_keep_peak(accounts, cell);
    cell->alloc_units += ACCOUNTS_ONE;
    cell->free_bytes += bytes;
    cell->free_units += ACCOUNTS_ONE;
    if (thread < ACCOUNTS_THREADS) {
        accounts->threads[thread].free_units += ACCOUNTS_ONE;
        accounts->threads[thread].free_bytes += bytes;
    }
    return wrap_subtract(0, (int64_t)bytes);
}

/* ---- Mappings, and what was left out ---- */

void accounts_map(struct accounts *accounts, uint32_t context, uint64_t bytes) {
    struct accounts_cell *cell = &accounts->cells[context];
    accounts_keep_peak(accounts, cell);
    cell->alloc_bytes += bytes;
    cell->alloc_units += ACCOUNTS_ONE;
}

void accounts_unmap(struct accounts *accounts, uint32_t context, uint64_t bytes, bool is_last) {
    struct accounts_cell *cell = &accounts->cells[context];
    accounts_keep_peak(accounts, cell);
    cell->free_bytes += bytes;
    cell->free_units += is_last ? ACCOUNTS_ONE : 0;
}

void accounts_culled(struct accounts *accounts, const struct memtrace_culled *culled) {
    struct accounts_cell *cell = &accounts->cells[culled->context];
    uint64_t units = culled->count * ACCOUNTS_ONE;
    accounts_keep_peak(accounts, cell);
    cell->alloc_bytes += culled->bytes;
    cell->alloc_units += units;
    cell->free_bytes += culled->bytes;
    cell->free_units += units;
    cell->temporary += (uint64_t)culled->temporary * ACCOUNTS_ONE;
    accounts_add_lifetime(accounts, cell, 0, units);
    if (accounts_class(accounts, culled->context) == MODEL_HEAP &&
        culled->thread < ACCOUNTS_THREADS) {
        struct accounts_thread *thread = &accounts->threads[culled->thread];
        thread->alloc_units += units;
        thread->alloc_bytes += culled->bytes;
        thread->free_units += units;
        thread->free_bytes += culled->bytes;
    }
}

/* ---- The end of a slice ---- */

static int accounts_by_number(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* A few are sorted; where there are many it is faster to look at all cells. */
static void accounts_sort_touched(struct accounts *accounts) {
    enum { MANY = 16 };
    if (accounts->touched_count < accounts->node_count / MANY) {
        qsort(accounts->touched, accounts->touched_count, sizeof *accounts->touched,
              accounts_by_number);
        return;
    }
    accounts->touched_count = 0;
    for (size_t id = 0; id < accounts->node_count; id++) {
        if (accounts->cells[id].epoch != 0) {
            accounts->touched[accounts->touched_count++] = (uint32_t)id;
        }
    }
}

static void accounts_cut_context(struct accounts *accounts, struct slice_writer *writer,
                                 uint32_t id) {
    struct accounts_cell *cell = &accounts->cells[id];
    struct slice_context context = {
        .id = id,
        .alloc_bytes = cell->alloc_bytes,
        .alloc_units = cell->alloc_units,
        .free_bytes = cell->free_bytes,
        .free_units = cell->free_units,
        .temporary = cell->temporary,
        .peak = !accounts->at_maximum && cell->epoch == accounts->epoch
                    ? cell->saved
                    : cell->alloc_bytes - cell->free_bytes,
    };
    if (cell->lifetimes != 0) {
        memcpy(context.lifetimes, accounts->lifetimes[cell->lifetimes - 1],
               sizeof context.lifetimes);
    }
    if (accounts->variances != NULL) {
        context.total_variance = accounts->variances[id].total;
        context.live_variance = accounts->variances[id].live;
        accounts->variances[id] = (struct accounts_variance){0};
    }
    slice_put_context(writer, &context);
    *cell = (struct accounts_cell){.class = cell->class};
}

/* foreign: the place of the thread's first pair; set to that of the next thread's. */
static void accounts_cut_thread(struct accounts *accounts, struct slice_writer *writer, uint32_t id,
                                size_t *foreign) {
    struct accounts_thread *thread = &accounts->threads[id];
    const struct slice_thread costs = {.id = id,
                                       .alloc_units = thread->alloc_units,
                                       .alloc_bytes = thread->alloc_bytes,
                                       .free_units = thread->free_units,
                                       .free_bytes = thread->free_bytes};
    if (slice_put_thread_of(writer, costs, &accounts->foreign, foreign)) {
        *thread = (struct accounts_thread){0};
    }
}

void accounts_cut(struct accounts *accounts, struct slice *slice) {
    struct slice_writer writer = {.slice = slice, .bytes.of_job = true};
    size_t foreign = 0;
    *slice = (struct slice){.change = accounts->live,
                            .highest = accounts->maximum,
                            .maximum_ns = accounts->maximum_ns,
                            .at_maximum = accounts->at_maximum,
                            .variance = accounts->variance};
    accounts_sort_touched(accounts);
    for (size_t i = 0; i < accounts->touched_count; i++) {
        accounts_cut_context(accounts, &writer, accounts->touched[i]);
    }
    foreign_sort(&accounts->foreign);
    for (uint32_t id = 0; id < ACCOUNTS_THREADS; id++) {
        accounts_cut_thread(accounts, &writer, id, &foreign);
    }
    foreign_clear(&accounts->foreign);
    accounts->touched_count = 0;
    accounts->lifetime_count = 0;
    accounts->crest.live = wrap_subtract(accounts->crest.live, accounts->live);
    accounts->live = accounts->maximum = 0;
    accounts->maximum_ns = 0;
    accounts->at_maximum = true;
    accounts->epoch++;
    accounts->variance = (struct slice_variance){0};
    slice_finish(&writer);
}
