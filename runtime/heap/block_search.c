/* SPDX-License-Identifier: MIT */
/* block_search.c: see block_search.h. */
#include "runtime/heap/block_search.h"

void block_search_begin(struct block_search *it, const struct shadow_heap *heap, uint32_t tick) {
    it->heap = heap;
    it->tick = tick;
    it->next = 0;
    it->depth = 0;
    it->touched.leaf = NULL;
}

static int block_search_contains(const struct heap_block *block, uintptr_t address) {
    return address - block->start < block->size;
}

/* The block that starts in the KiB of `at`, if it contains the address. */
static void block_search_take(struct block_search *it, uint8_t *leaf, uintptr_t at,
                              uintptr_t address, uintptr_t limit) {
    struct heap_block block;
    if (!written_pages_at(&it->touched, it->heap, leaf, heap_coarse(it->heap, leaf, at)) ||
        !heap_decode_coarse(it->heap, leaf, at, &block) || block.start < it->next ||
        block.start >= limit) {
        return;
    }
    it->next = block.start + 1;
    if (block_search_contains(&block, address) && it->depth < BLOCK_SEARCH_DEPTH) {
        block.birth_tick = heap_whole_birth(block.birth_tick, it->tick);
        it->block[it->depth++] = block;
    }
}

int block_search_find(struct block_search *it, uintptr_t address, uintptr_t limit) {
    uintptr_t at = it->next & ~(uintptr_t)(FINE_SIZE_LIMIT - 1);
    while (it->depth > 0 && !block_search_contains(&it->block[it->depth - 1], address)) {
        it->depth--;
    }
    while (at < limit) {
        uint8_t *leaf = heap_leaf(it->heap, at);
        if (leaf != NULL) {
            block_search_take(it, leaf, at, address, limit);
            at = at < UINTPTR_MAX - FINE_SIZE_LIMIT ? at + FINE_SIZE_LIMIT : UINTPTR_MAX;
        } else {
            at = heap_next_span(it->heap, at);
        }
    }
    it->next = it->next > limit ? it->next : limit;
    return it->depth;
}

/* Whether a record of a small block that starts there may be anything but zero. */
static int block_search_is_touched(struct block_search *it, uintptr_t address) {
    uint8_t *leaf = heap_leaf(it->heap, address);
    return leaf != NULL &&
           written_pages_at(&it->touched, it->heap, leaf, heap_fine(it->heap, leaf, address));
}

int block_search_find_small(struct block_search *it, uintptr_t address, uintptr_t limit,
                            struct heap_block *block) {
    uintptr_t lowest = address > FINE_SIZE_LIMIT ? address - FINE_SIZE_LIMIT : 0;
    return (block_search_is_touched(it, lowest) || block_search_is_touched(it, address)) &&
           heap_find_small(it->heap, address, limit, block);
}

/* What is visited. */
struct visit {
    const struct shadow_heap *heap;
    uint32_t tick;
    struct written_pages *touched;
    void (*visit)(void *argument, const struct heap_block *block);
    void *argument;
};

/* Small blocks of one KiB, and the large one that starts there, where its address puts it. */
static void block_search_visit_kib(const struct visit *visit, uint8_t *leaf, uintptr_t kib) {
    const struct shadow_heap *heap = visit->heap;
    struct heap_block large;
    struct heap_block block;
    uintptr_t step = (uintptr_t)1 << heap->granule_shift;
    int is_due = written_pages_at(visit->touched, heap, leaf, heap_coarse(heap, leaf, kib)) &&
                 heap_decode_coarse(heap, leaf, kib, &large);
    int has_small = written_pages_at(visit->touched, heap, leaf, heap_fine(heap, leaf, kib));
    if (is_due) {
        large.birth_tick = heap_whole_birth(large.birth_tick, visit->tick);
    }
    for (uintptr_t at = kib; has_small && at < kib + FINE_SIZE_LIMIT; at += step) {
        if (!heap_decode_fine(heap, leaf, at, &block)) {
            continue;
        }
        if (heap_has_high_births(visit->tick)) {
            block.birth_tick |= (uint32_t)*heap_birth_high(heap, leaf, at) << TICK_LOW_BITS;
        }
        if (is_due && large.start <= block.start) {
            visit->visit(visit->argument, &large);
            is_due = 0;
        }
        visit->visit(visit->argument, &block);
    }
    if (is_due) {
        visit->visit(visit->argument, &large);
    }
}

void block_search_visit(const struct shadow_heap *heap, uint32_t tick,
                        struct written_pages *touched,
                        void (*visit)(void *argument, const struct heap_block *block),
                        void *argument) {
    const struct visit all = {heap, tick, touched, visit, argument};
    uintptr_t span = heap_next_span(heap, 0);
    while (span != UINTPTR_MAX) {
        uint8_t *leaf = heap_leaf(heap, span);
        for (uintptr_t at = 0; at < SPAN_BYTES; at += FINE_SIZE_LIMIT) {
            block_search_visit_kib(&all, leaf, span + at);
        }
        span =
            span < UINTPTR_MAX - SPAN_BYTES ? heap_next_span(heap, span + SPAN_BYTES) : UINTPTR_MAX;
    }
}
