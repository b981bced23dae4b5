/* SPDX-License-Identifier: MIT */
/* enclosing.c: see enclosing.h. */
#include "runtime/heap/enclosing.h"

void enclosing_begin(struct enclosing *it, const struct shadow_heap *heap, uint32_t tick) {
    *it = (struct enclosing){.heap = heap, .tick = tick};
}

static int contains(const struct heap_block *block, uintptr_t address) {
    return address - block->start < block->size;
}

/* The block that starts in the KiB of `at`, if it contains the address. */
static void take(struct enclosing *it, uint8_t *leaf, uintptr_t at, uintptr_t address,
                 uintptr_t limit) {
    struct heap_block block;
    if (!heap_decode_coarse(it->heap, leaf, at, &block) || block.start < it->next ||
        block.start >= limit) {
        return;
    }
    it->next = block.start + 1;
    if (contains(&block, address) && it->depth < ENCLOSING_DEPTH) {
        block.birth_tick = heap_whole_birth(block.birth_tick, it->tick);
        it->block[it->depth++] = block;
    }
}

int enclosing_find(struct enclosing *it, uintptr_t address, uintptr_t limit) {
    uintptr_t at = it->next & ~(uintptr_t)(FINE_SIZE_LIMIT - 1);
    while (it->depth > 0 && !contains(&it->block[it->depth - 1], address)) {
        it->depth--;
    }
    while (at < limit) {
        uint8_t *leaf = heap_leaf(it->heap, at);
        if (leaf != NULL) {
            take(it, leaf, at, address, limit);
            at += FINE_SIZE_LIMIT;
        } else {
            at = heap_next_span(it->heap, at);
        }
    }
    it->next = it->next > limit ? it->next : limit;
    return it->depth;
}

/* Small blocks of one KiB, and the large one that starts there, where its address puts it. */
static void visit_kib(const struct shadow_heap *heap, uint8_t *leaf, uintptr_t kib, uint32_t tick,
                      void (*visit)(void *, const struct heap_block *), void *argument) {
    struct heap_block large;
    struct heap_block block;
    int is_due = heap_decode_coarse(heap, leaf, kib, &large);
    uintptr_t step = (uintptr_t)1 << heap->granule_shift;
    if (is_due) {
        large.birth_tick = heap_whole_birth(large.birth_tick, tick);
    }
    for (uintptr_t at = kib; at < kib + FINE_SIZE_LIMIT; at += step) {
        if (heap_decode_fine(heap, leaf, at, &block)) {
            if (is_due && large.start <= block.start) {
                visit(argument, &large);
                is_due = 0;
            }
            block.birth_tick |= (uint32_t)*heap_birth_high(heap, leaf, at) << TICK_LOW_BITS;
            visit(argument, &block);
        }
    }
    if (is_due) {
        visit(argument, &large);
    }
}

void enclosing_visit(const struct shadow_heap *heap, uint32_t tick,
                     void (*visit)(void *argument, const struct heap_block *block),
                     void *argument) {
    uintptr_t span = heap_next_span(heap, 0);
    while (span != UINTPTR_MAX) {
        uint8_t *leaf = heap_leaf(heap, span);
        for (uintptr_t kib = span; kib < span + SPAN_BYTES; kib += FINE_SIZE_LIMIT) {
            visit_kib(heap, leaf, kib, tick, visit, argument);
        }
        span = heap_next_span(heap, span + SPAN_BYTES);
    }
}
