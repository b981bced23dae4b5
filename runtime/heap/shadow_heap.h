/* SPDX-License-Identifier: MIT */
/*
 * shadow_heap.h: who owns this block? A two-level table indexed by address, like a page table.
 *
 * Two tables a span of 32 MiB of address space, in one lazily touched mapping (format.h):
 *   fine   8 bytes a granule of 32 bytes, for blocks under 1 KiB
 *   coarse 16 bytes a KiB, for all others
 * so the price is 25 % of a heap of small blocks, 1.6 % of one of large blocks. While recording,
 * 4 more bytes a granule hold the blocks' numbers (12.5 %); until then nobody touches their pages.
 * Invariant: two live blocks of a table never start in one granule. glibc's start at least 32 bytes
 * apart; for other allocators tiny requests are rounded up to 32 bytes (entry/malloc.c). So where a
 * new block meets a record, that one's block is gone, and nobody told us.
 *
 * A live block belongs to one thread at a time by malloc's own contract, so its record is written
 * without a lock; others may look at it at any time.
 */
#ifndef RUNTIME_HEAP_SHADOW_HEAP_H
#define RUNTIME_HEAP_SHADOW_HEAP_H

#include "memtrace/blocks.h"
#include "runtime/base/compiler.h"
#include "runtime/machine/machine.h"

enum {
    SPAN_BYTES = 1 << MEMTRACE_SPAN_SHIFT,
    SPAN_COUNT = 1 << (MACHINE_ADDRESS_BITS - MEMTRACE_SPAN_SHIFT),
    FINE_SIZE_LIMIT = 1 << MEMTRACE_COARSE_SHIFT,
    TICK_LOW_BITS = 16,
    /* From this tick on births may have high bits: a little early, since the clock of one thread
     * may lag behind another's. */
    HIGH_BIRTHS_TICK = (1 << TICK_LOW_BITS) - (1 << 12),
    BIG_BIRTH_BITS = 64 - MEMTRACE_BIG_BIRTH_SHIFT,
};

struct shadow_heap {
    uint8_t **root; /* SPAN_COUNT leaves, then the newest one; NULL: no memory, nothing is kept */
    unsigned granule_shift;
    int numbered; /* leaves have room for numbers, behind the rest: set before there is a leaf */
};

/* What is known of a block. */
struct heap_block {
    uint64_t size;
    uint32_t context;
    uint32_t thread;
    uint32_t birth_tick;
    uintptr_t start;
};

/* Ticks go round. The last sixteenth of the circle is the near future: births that were noted by a
 * thread which looked at the clock later than who asks. */
#define HEAP_NEAR_FUTURE UINT32_C(0xf0000000)

/* How old a block is, in ticks: right to 195 days, never negative. */
INLINE uint32_t heap_age(uint32_t birth_tick, uint32_t tick) {
    uint32_t passed = tick - birth_tick;
    return LIKELY(passed - 1 < HEAP_NEAR_FUTURE - 1) ? passed : 0;
}

/* Of a large block's birth only the low bits are kept: which tick it was, up to 12 days later. */
INLINE uint32_t heap_whole_birth(uint32_t low_bits, uint32_t tick) {
    enum { LOST_BITS = 32 - BIG_BIRTH_BITS };
    uint32_t passed = (tick - low_bits) << LOST_BITS;
    return passed < HEAP_NEAR_FUTURE ? tick - (passed >> LOST_BITS) : tick + (-passed >> LOST_BITS);
}

/* Whether the high part of births must be looked at where the present tick is this. */
INLINE int heap_has_high_births(uint32_t tick) {
    return tick >= HIGH_BIRTHS_TICK;
}

/* Which of the two tables has a block of this size. */
INLINE int heap_is_small(uint64_t size) {
    return size < FINE_SIZE_LIMIT;
}

int heap_init(struct shadow_heap *heap, unsigned granule_shift);
/* In a forked child: ends what another thread was just doing. */
void heap_fork(void);
/* All that heaps have mapped is gone (own_maps_give_up()): they begin anew. */
void heap_forget(void);
/* Gives its address space back: nothing is in it. */
void heap_give_up(struct shadow_heap *heap);
/* Calls visit() for every live block, of which large ones' births are only as they are kept: to be
 * made whole by heap_whole_birth(). Others may come and go meanwhile. */
void heap_visit(const struct shadow_heap *heap,
                void (*visit)(void *argument, const struct heap_block *block), void *argument);
/* The live block that contains `address`. 1, or 0. `tick`: as heap_remove()'s. */
int heap_find(const struct shadow_heap *heap, uintptr_t address, uint32_t tick,
              struct heap_block *block);
/* The same of blocks of less than 1 KiB alone that start below `limit`, which is at most address +
 * 1: the one that starts last. */
int heap_find_small(const struct shadow_heap *heap, uintptr_t address, uintptr_t limit,
                    struct heap_block *block);
/* The first span at or behind the address that has a leaf; UINTPTR_MAX: none has. */
uintptr_t heap_next_span(const struct shadow_heap *heap, uintptr_t from);
uint8_t *heap_add_leaf(struct shadow_heap *heap, uintptr_t address);
/* Takes out the block whose record is where that of a small or a large one at `address` would be.
 * 1, or 0: there is none. `tick`: as heap_remove()'s. */
int heap_remove_stale(struct shadow_heap *heap, uintptr_t address, int small, uint32_t tick,
                      struct heap_block *block);
/* Whether a small or a large block begins in the fine granule of `address`. */
int heap_starts_in_granule(const struct shadow_heap *heap, uintptr_t address, int small);
/* Overwrites the record of this block, which the caller owns. */
void heap_replace(struct shadow_heap *heap, const struct heap_block *block);

INLINE size_t heap_fine_items(const struct shadow_heap *heap) {
    return (size_t)SPAN_BYTES >> heap->granule_shift;
}

/* Of a leaf without its numbers. */
INLINE size_t heap_tables_bytes(const struct shadow_heap *heap) {
    return heap_fine_items(heap) * (sizeof(uint64_t) + sizeof(uint16_t)) +
           (SPAN_BYTES >> MEMTRACE_COARSE_SHIFT) * sizeof(struct memtrace_big_block);
}

INLINE uint64_t *heap_fine(const struct shadow_heap *heap, uint8_t *leaf, uintptr_t address) {
    return (uint64_t *)leaf + ((address & (SPAN_BYTES - 1)) >> heap->granule_shift);
}

INLINE uint16_t *heap_birth_high(const struct shadow_heap *heap, uint8_t *leaf, uintptr_t address) {
    return (uint16_t *)(leaf + heap_fine_items(heap) * sizeof(uint64_t)) +
           ((address & (SPAN_BYTES - 1)) >> heap->granule_shift);
}

INLINE struct memtrace_big_block *heap_coarse(const struct shadow_heap *heap, uint8_t *leaf,
                                              uintptr_t address) {
    size_t fine = heap_fine_items(heap) * (sizeof(uint64_t) + sizeof(uint16_t));
    return (struct memtrace_big_block *)(leaf + fine) +
           ((address & (SPAN_BYTES - 1)) >> MEMTRACE_COARSE_SHIFT);
}

INLINE uint8_t *heap_leaf(const struct shadow_heap *heap, uintptr_t address) {
    /* Pairs with the release in heap_add_leaf(). */
    return UNLIKELY((uint64_t)address >> MACHINE_ADDRESS_BITS != 0 || heap->root == NULL)
               ? NULL
               : LOAD_ACQUIRE(&heap->root[address >> MEMTRACE_SPAN_SHIFT]);
}

INLINE uint32_t *heap_number(const struct shadow_heap *heap, uint8_t *leaf, uintptr_t address) {
    return (uint32_t *)(leaf + heap_tables_bytes(heap)) +
           ((address & (SPAN_BYTES - 1)) >> heap->granule_shift);
}

/* Whether no block that is kept can start here. */
INLINE int heap_is_empty_at(const struct shadow_heap *heap, uintptr_t address) {
    uint8_t *leaf = heap_leaf(heap, address);
    return leaf == NULL || (LOAD_RELAXED(heap_fine(heap, leaf, address)) == 0 &&
                            LOAD_RELAXED(&heap_coarse(heap, leaf, address)->owner) == 0);
}

/* Of a numbered heap: the block at `address`, which the caller owns, is this one of the recording;
 * 0: it is not in it. */
INLINE void heap_set_number(const struct shadow_heap *heap, uintptr_t address, uint32_t number) {
    uint8_t *leaf = heap_leaf(heap, address);
    if (LIKELY(leaf != NULL)) {
        STORE_RELAXED(heap_number(heap, leaf, address), number);
    }
}

INLINE int heap_has_number(const struct shadow_heap *heap, uintptr_t address) {
    uint8_t *leaf = heap_leaf(heap, address);
    return LIKELY(leaf != NULL) && LOAD_RELAXED(heap_number(heap, leaf, address)) != 0;
}

/* The number of the block that was just taken out at `address`, for the last time. */
INLINE uint32_t heap_take_number(const struct shadow_heap *heap, uintptr_t address) {
    uint8_t *leaf = heap_leaf(heap, address);
    uint32_t *place;
    uint32_t number;
    if (UNLIKELY(leaf == NULL)) {
        return 0;
    }
    place = heap_number(heap, leaf, address);
    number = LOAD_RELAXED(place);
    if (number != 0) { /* what nobody numbers keeps a table that nobody wrote */
        STORE_RELAXED(place, 0u);
    }
    return number;
}

/* The same where blocks are just being named that were there before: locked instructions, which
 * also keep in order what is done to the block's record before. */
uint32_t heap_take_number_locked(const struct shadow_heap *heap, uintptr_t address);
/* 1, or 0: the block has got a number meanwhile. */
int heap_claim_number(const struct shadow_heap *heap, uintptr_t address, uint32_t number);
void heap_unclaim_number(const struct shadow_heap *heap, uintptr_t address, uint32_t number);

/* Gives each live block that has no number one: `next` says which (0: none can be had for this
 * one), and `named` hears who has it. All other threads change numbers by the functions above. */
struct heap_naming {
    uint32_t (*next)(void *argument);
    void (*named)(void *argument, const struct heap_block *block);
    void *argument;
};
void heap_name_all(const struct shadow_heap *heap, const struct heap_naming *naming);
/* No block has a number, and their memory is given back: nobody looks at them meanwhile. */
void heap_forget_numbers(const struct shadow_heap *heap);

/* Why a block was not noted. */
enum { HEAP_NO_ROOM = -1, HEAP_STALE = 1 };

/* Notes a block, whose leaf this is. 0; or HEAP_STALE: the record of another block is there, to be
 * taken out by heap_remove_stale(). */
INLINE int heap_insert_into(const struct shadow_heap *heap, uint8_t *leaf,
                            const struct heap_block *block) {
    uintptr_t address = block->start;
    if (LIKELY(block->size < FINE_SIZE_LIMIT)) {
        uint64_t *place = heap_fine(heap, leaf, address);
        uint64_t record = (uint64_t)block->context | block->size << MEMTRACE_BLOCK_SIZE_SHIFT |
                          (uint64_t)block->thread << MEMTRACE_BLOCK_THREAD_SHIFT |
                          (uint64_t)block->birth_tick << MEMTRACE_BLOCK_BIRTH_SHIFT;
        record ^= (uint64_t)(address & ~(uintptr_t)7) << MEMTRACE_BLOCK_ADDRESS_SHIFT;
        if (UNLIKELY(LOAD_RELAXED(place) != 0)) {
            return HEAP_STALE;
        }
        if (UNLIKELY(heap_has_high_births(block->birth_tick))) {
            *heap_birth_high(heap, leaf, address) = (uint16_t)(block->birth_tick >> TICK_LOW_BITS);
        }
        STORE_RELEASE(place, record); /* behind the high bits of its birth */
    } else {
        struct memtrace_big_block *big = heap_coarse(heap, leaf, address);
        if (UNLIKELY(LOAD_RELAXED(&big->owner) != 0)) {
            return HEAP_STALE;
        }
        STORE_RELAXED(&big->size_offset,
                      block->size | (uint64_t)(address & ((1u << MEMTRACE_COARSE_SHIFT) - 1))
                                        << MEMTRACE_BIG_OFFSET_SHIFT);
        STORE_RELEASE(&big->owner, (uint64_t)block->context |
                                       (uint64_t)block->thread << MEMTRACE_BIG_THREAD_SHIFT |
                                       (uint64_t)block->birth_tick << MEMTRACE_BIG_BIRTH_SHIFT);
    }
    return 0;
}

/* The same; or HEAP_NO_ROOM. */
INLINE int heap_insert(struct shadow_heap *heap, const struct heap_block *block) {
    uintptr_t address = block->start;
    uint8_t *leaf = heap_leaf(heap, address);
    if (UNLIKELY(leaf == NULL)) {
        struct shadow_heap copy = *heap; /* so that the caller's can be in registers */
        leaf = heap_add_leaf(&copy, address);
        if (leaf == NULL) {
            return HEAP_NO_ROOM;
        }
    }
    return heap_insert_into(heap, leaf, block);
}

INLINE int heap_decode_fine(const struct shadow_heap *heap, uint8_t *leaf, uintptr_t address,
                            struct heap_block *block) {
    uint64_t record = LOAD_RELAXED(heap_fine(heap, leaf, address));
    uintptr_t granule = address & ~(uintptr_t)((1u << heap->granule_shift) - 1);
    if (record == 0) {
        return 0;
    }
    record ^= (uint64_t)granule << MEMTRACE_BLOCK_ADDRESS_SHIFT;
    block->context = record & ((1u << MEMTRACE_CONTEXT_BITS) - 1);
    block->size = (record >> MEMTRACE_BLOCK_SIZE_SHIFT) & (FINE_SIZE_LIMIT - 1);
    block->thread = (record >> MEMTRACE_BLOCK_THREAD_SHIFT) & ((1u << MEMTRACE_THREAD_BITS) - 1);
    block->birth_tick = (uint32_t)(record >> MEMTRACE_BLOCK_BIRTH_SHIFT);
    block->start = granule + ((record >> MEMTRACE_BLOCK_OFFSET_SHIFT) & 3) * 8;
    return 1;
}

INLINE int heap_decode_coarse(const struct shadow_heap *heap, uint8_t *leaf, uintptr_t granule,
                              struct heap_block *block) {
    const struct memtrace_big_block *big = heap_coarse(heap, leaf, granule);
    uint64_t owner = LOAD_ACQUIRE(&big->owner);
    uint64_t size_offset;
    if (owner == 0) {
        return 0;
    }
    size_offset = LOAD_RELAXED(&big->size_offset);
    block->context = owner & ((1u << MEMTRACE_CONTEXT_BITS) - 1);
    block->thread = (owner >> MEMTRACE_BIG_THREAD_SHIFT) & ((1u << MEMTRACE_THREAD_BITS) - 1);
    block->birth_tick = (uint32_t)(owner >> MEMTRACE_BIG_BIRTH_SHIFT);
    block->size = size_offset & ((UINT64_C(1) << MEMTRACE_BIG_OFFSET_SHIFT) - 1);
    block->start = (granule & ~(uintptr_t)(FINE_SIZE_LIMIT - 1)) +
                   (uintptr_t)(size_offset >> MEMTRACE_BIG_OFFSET_SHIFT);
    return 1;
}

/* The block that starts at `address`, whose leaf this is: the word that is 0 once it is taken out.
 * NULL: no such block is kept. `tick`: the present one, also of other threads. */
INLINE uint64_t *heap_look_up(const struct shadow_heap *heap, uint8_t *leaf, uintptr_t address,
                              uint32_t tick, struct heap_block *block) {
    if (LIKELY(heap_decode_fine(heap, leaf, address, block) &&
               block->start == (address & ~(uintptr_t)7))) {
        if (UNLIKELY(heap_has_high_births(tick))) {
            block->birth_tick |= (uint32_t)*heap_birth_high(heap, leaf, address) << TICK_LOW_BITS;
        }
        return heap_fine(heap, leaf, address);
    }
    if (heap_decode_coarse(heap, leaf, address, block) && block->start == address) {
        block->birth_tick = heap_whole_birth(block->birth_tick, tick);
        return &heap_coarse(heap, leaf, address)->owner;
    }
    return NULL;
}

/* Takes out the block that starts at `address`, before the allocator may give it to others.
 * 1, or 0: no such block is kept. `tick`: as heap_look_up()'s. */
INLINE int heap_remove(struct shadow_heap *heap, uintptr_t address, uint32_t tick,
                       struct heap_block *block) {
    uint8_t *leaf = heap_leaf(heap, address);
    uint64_t *record = LIKELY(leaf != NULL) ? heap_look_up(heap, leaf, address, tick, block) : NULL;
    if (UNLIKELY(record == NULL)) {
        return 0;
    }
    STORE_RELAXED(record, 0);
    return 1;
}

/* --- which pages of a leaf were ever written ---------------------------------------------------
 *
 * Leaves are large and sparse, and who only looks at them would have the kernel map a page for each
 * that it looks at. */

enum {
    /* records and births of the finest granule, and large blocks */
    WRITTEN_PAGES_BYTES =
        (SPAN_BYTES >> MEMTRACE_POOL_SHIFT) * (int)(sizeof(uint64_t) + sizeof(uint16_t)) +
        (SPAN_BYTES >> MEMTRACE_COARSE_SHIFT) * (int)sizeof(struct memtrace_big_block),
    WRITTEN_PAGES_MOST = WRITTEN_PAGES_BYTES / MEMTRACE_PAGE_SIZE + 1
};

/* Of the leaf that was asked for last. All zero: of none yet. */
struct written_pages {
    const uint8_t *leaf;
    unsigned char page[WRITTEN_PAGES_MOST];
};

/* Whether what lies there in the leaf may be anything but zero. */
int written_pages_at(struct written_pages *touched, const struct shadow_heap *heap,
                     const uint8_t *leaf, const void *place);

#endif
