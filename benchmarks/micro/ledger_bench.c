/* SPDX-License-Identifier: MIT */
/*
 * ledger_bench.c: the ledger with the peak: what counting an allocation and its free costs, with
 * one cell, with many cells, and where each pair crosses the maximum.
 */
#include "benchmarks/micro/micro.h"
#include "runtime/heap/ledger.h"
#include "runtime/heap/peak.h"

enum { OPERATIONS = 1000000, CONTEXTS = 100000 };

struct plan {
    struct ledger ledger;
    struct ledger_column *column;
    struct memtrace_header *header;
    struct peak_share peak;
    struct memtrace_counts counts;
    uint32_t contexts;
    uint32_t stride; /* from one event's context to the next; without a common divisor */
};

/* Contexts skip the places under each leaf's header. */
static uint32_t context_number(uint32_t place) {
    uint32_t leaf = place / (MEMTRACE_LEAF_ITEMS - MEMTRACE_FIRST_CONTEXT);
    return place + (leaf + 1) * MEMTRACE_FIRST_CONTEXT;
}

static void grow(struct plan *plan, uint64_t size) {
    counter_add(&plan->counts.alloc_bytes, size);
    peak_grow(&plan->peak, plan->header, peak_live(&plan->counts));
}

static void shrink(struct plan *plan, uint64_t size) {
    counter_add(&plan->counts.free_bytes, size);
    peak_shrink(&plan->peak, plan->header, peak_live(&plan->counts), size);
}

static void count_pairs(void *argument) {
    struct plan *plan = argument;
    for (uint32_t i = 0, place = 0; i < OPERATIONS; i++) {
        struct ledger_event event = {.context = context_number(place), .size = 64};
        ledger_alloc(&plan->ledger, plan->column, &event);
        grow(plan, event.size);
        BENCH_KEEP(plan);
        shrink(plan, event.size);
        ledger_free(&plan->ledger, plan->column, &event);
        place += plan->stride;
        place -= place >= plan->contexts ? plan->contexts : 0;
    }
}

int main(void) {
    static struct plan plan;
    static struct space space;
    micro_open_space(&space);
    if (ledger_init(&plan.ledger, &space) != 0)
        return 1;
    plan.column = ledger_adopt(&plan.ledger);
    plan.header = space.header;
    peak_join(&plan.peak, plan.header, &plan.counts, PEAK_ALONE);
    plan.contexts = 1; /* and a stride of 0 */
    micro_measure("ledger, peak: one context, each pair at the maximum", OPERATIONS, count_pairs,
                  &plan);
    grow(&plan, 1 << 20);
    shrink(&plan, 1 << 20);
    micro_measure("ledger, peak: one context, below the maximum", OPERATIONS, count_pairs, &plan);
    plan.contexts = CONTEXTS;
    plan.stride = 1;
    micro_measure("ledger, peak: 100,000 contexts in order", OPERATIONS, count_pairs, &plan);
    plan.stride = 61803;
    micro_measure("ledger, peak: 100,000 contexts, far apart", OPERATIONS, count_pairs, &plan);
    return 0;
}
