/* SPDX-License-Identifier: MIT */
/* shadow_heap.c: the rare half of the shadow heap. See shadow_heap.h. */
#include "runtime/heap/shadow_heap.h"

#include "runtime/base/limits.h"
#include "runtime/base/room.h"
#include "runtime/base/sys.h"

#include <fcntl.h>

enum {
    NEWEST = SPAN_COUNT, /* its place in the root */
    ROOT_BYTES = (SPAN_COUNT + 1) * sizeof(uint8_t *),
    /* Of what limits leave. */
    ROOT_PART = 2,
    LEAF_PART = 4,
};

static const struct room_kind leaves_kind = {
    .use = ROOM_MEMORY,
    .place = ROOM_OF_HEAP,
    .most_bytes = UINT64_C(1) << 36,
    .limit_part = 1,
};
/* Of all heaps. Between the program's own mappings they would spread these over more spans. */
static struct room leaves;

/* Behind each leaf: the root is 32 MiB, of which hardly a page is used, so leaves are found by
 * their list. A leaf that another thread was faster to add is in it, but not in the root. */
struct leaf_link {
    uint8_t *older;
    uintptr_t span; /* its first address */
};

static size_t heap_leaf_bytes(const struct shadow_heap *heap) {
    return heap_tables_bytes(heap) +
           (heap->numbered ? heap_fine_items(heap) * sizeof(uint32_t) : 0);
}

static struct leaf_link *heap_link(const struct shadow_heap *heap, uint8_t *leaf) {
    return (struct leaf_link *)(leaf + heap_leaf_bytes(heap));
}

/* The page of this place of the root: hardly one of them is ever written, and what cannot be does
 * not count where the program's memory is limited. (Several threads may do so.) 0, or -1. */
static int heap_make_writable(const struct shadow_heap *heap, size_t place) {
    uintptr_t page = sys_page_bytes();
    uintptr_t start = (uintptr_t)&heap->root[place] & ~(page - 1);
    return sys_protect((void *)start, page, 1) == 0 ? 0 : -1;
}

int heap_init(struct shadow_heap *heap, unsigned granule_shift) {
    heap->granule_shift = granule_shift;
    heap->root =
        limits_allow(LIMITS_ADDRESS, ROOT_BYTES, ROOT_PART) ? sys_map_readable(ROOT_BYTES) : NULL;
    if (heap->root == NULL) {
        return -1;
    }
    sys_no_huge_pages(heap->root, ROOT_BYTES);
    if (heap_make_writable(heap, NEWEST) != 0) {
        heap_give_up(heap);
        return -1;
    }
    if (leaves.base == NULL) {
        room_open(&leaves, &leaves_kind);
    }
    return 0;
}

void heap_fork(void) {
    room_fork(&leaves);
}

void heap_forget(void) {
    leaves = (struct room){0};
}

void heap_give_up(struct shadow_heap *heap) {
    if (heap->root != NULL) {
        sys_unmap(heap->root, ROOT_BYTES);
    }
    heap->root = NULL;
}

COLD uint8_t *heap_add_leaf(struct shadow_heap *heap, uintptr_t address) {
    struct leaf_link *link;
    uint8_t *none = NULL;
    uint8_t *leaf;
    uint8_t **place;
    size_t size;
    if ((uint64_t)address >> MACHINE_ADDRESS_BITS != 0 || heap->root == NULL) {
        return NULL;
    }
    place = &heap->root[address >> MEMTRACE_SPAN_SHIFT];
    size = heap_leaf_bytes(heap) + sizeof(struct leaf_link);
    if (!limits_allow(LIMITS_MEMORY, size, LEAF_PART) ||
        heap_make_writable(heap, address >> MEMTRACE_SPAN_SHIFT) != 0) {
        return NULL;
    }
    leaf = room_take(&leaves, size);
    leaf = leaf != NULL ? leaf : sys_map(size);
    if (leaf == NULL) {
        return NULL;
    }
    /* A heap with holes would otherwise pay two megabytes for each few blocks. */
    sys_no_huge_pages(leaf, heap_leaf_bytes(heap));
    /* In the list before it is in the root: a child that another thread forks meanwhile finds all.
     */
    link = heap_link(heap, leaf);
    link->span = address & ~(uintptr_t)(SPAN_BYTES - 1);
    link->older = LOAD_RELAXED(&heap->root[NEWEST]);
    while (!__atomic_compare_exchange_n(&heap->root[NEWEST], &link->older, leaf, 0,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    return __atomic_compare_exchange_n(place, &none, leaf, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
               ? leaf
               : none; /* another thread was first */
}

static int heap_decode(const struct shadow_heap *heap, uint8_t *leaf, uintptr_t at, int small,
                       struct heap_block *block) {
    return small ? heap_decode_fine(heap, leaf, at, block)
                 : heap_decode_coarse(heap, leaf, at, block);
}

int heap_remove_stale(struct shadow_heap *heap, uintptr_t address, int small, uint32_t tick,
                      struct heap_block *block) {
    uint8_t *leaf = heap_leaf(heap, address);
    if (leaf == NULL || !heap_decode(heap, leaf, address, small, block)) {
        return 0;
    }
    if (small) {
        block->birth_tick |= (uint32_t)*heap_birth_high(heap, leaf, address) << TICK_LOW_BITS;
        STORE_RELAXED(heap_fine(heap, leaf, address), 0);
    } else {
        block->birth_tick = heap_whole_birth(block->birth_tick, tick);
        STORE_RELAXED(&heap_coarse(heap, leaf, address)->owner, 0);
    }
    return 1;
}

int heap_starts_in_granule(const struct shadow_heap *heap, uintptr_t address, int small) {
    uint8_t *leaf = heap_leaf(heap, address);
    struct heap_block block;
    return leaf != NULL && heap_decode(heap, leaf, address, small, &block) &&
           block.start >> heap->granule_shift == address >> heap->granule_shift;
}

void heap_replace(struct shadow_heap *heap, const struct heap_block *block) {
    struct heap_block before;
    heap_remove_stale(heap, block->start, heap_is_small(block->size), 0, &before);
    heap_insert(heap, block);
}

/* --- which pages were ever written ------------------------------------------------------------ */

/* What was swapped out is not in memory, but /proc/self/pagemap knows of it. An emulator's tells of
 * other addresses, and then adds pages that were not touched, at most. Where it cannot be read, all
 * may be. */
static int written_pages_add_swapped(int pagemap, const uint8_t *start, size_t pages,
                                     unsigned char *page) {
    enum { BATCH = 256, SWAPPED = 62 };
    uint64_t entry[BATCH];
    size_t first = (uintptr_t)start / sys_page_bytes();
    for (size_t at = 0; at < pages; at += BATCH) {
        size_t count = pages - at < BATCH ? pages - at : BATCH;
        size_t bytes = count * sizeof *entry;
        if (sys_pread(pagemap, entry, bytes, (first + at) * sizeof *entry) != (long)bytes) {
            return -1;
        }
        for (size_t i = 0; i < count; i++) {
            page[at + i] |= (entry[i] >> SWAPPED & 1) != 0;
        }
    }
    return 0;
}

static long written_pages_open(void) {
    return sys_open("/proc/self/pagemap", O_RDONLY, 0);
}

/* Of pages of the kernel's from a page's start on, one byte for each: 1: it may be anything but
 * zero. Others may write meanwhile: what they did before the call is seen. A pagemap that is
 * negative: then all are 1. */
static void written_pages_look(long pagemap, const uint8_t *start, size_t pages,
                               unsigned char *page) {
    if (pagemap < 0 || sys_mincore((void *)(uintptr_t)start, pages * sys_page_bytes(), page) != 0) {
        __builtin_memset(page, 1, pages);
        return;
    }
    for (size_t i = 0; i < pages; i++) {
        page[i] &= 1;
    }
    if (written_pages_add_swapped((int)pagemap, start, pages, page) != 0) {
        __builtin_memset(page, 1, pages);
    }
}

int written_pages_at(struct written_pages *touched, const struct shadow_heap *heap,
                     const uint8_t *leaf, const void *place) {
    size_t page = sys_page_bytes();
    if (touched->leaf != leaf) {
        long pagemap = written_pages_open();
        touched->leaf = leaf;
        written_pages_look(pagemap, leaf, (heap_tables_bytes(heap) + page - 1) / page,
                           touched->page);
        sys_close(pagemap);
    }
    return touched->page[((const uint8_t *)place - leaf) / (ptrdiff_t)page];
}

/* --- all blocks ------------------------------------------------------------------------------- */

/* Who goes over all blocks of a leaf. */
struct look {
    const struct shadow_heap *heap;
    uint8_t *leaf;
    long pagemap; /* written_pages_open() */
    /* Small or large blocks that start between these addresses. */
    void (*between)(const struct look *look, uintptr_t from, uintptr_t to, int small);
    const void *what;
};

/* Of a table, one item for each `step` of the addresses from `span` on. Pages of it that were never
 * touched are left out: there are thousands in a leaf, and the kernel would map each. */
static void heap_each_part(const struct look *look, uintptr_t span, int small) {
    enum { PAGES = 256 };
    unsigned char is_touched[PAGES];
    const uint8_t *table = small ? (uint8_t *)heap_fine(look->heap, look->leaf, span)
                                 : (uint8_t *)heap_coarse(look->heap, look->leaf, span);
    uintptr_t part = small ? sys_page_bytes() / sizeof(uint64_t) << look->heap->granule_shift
                           : sys_page_bytes() / sizeof(struct memtrace_big_block)
                                 << MEMTRACE_COARSE_SHIFT;
    size_t pages = SPAN_BYTES / part;
    for (size_t i = 0; i < pages; i++) {
        if (i % PAGES == 0) {
            written_pages_look(look->pagemap, table + i * sys_page_bytes(),
                               pages - i < PAGES ? pages - i : PAGES, is_touched);
        }
        if (is_touched[i % PAGES]) {
            look->between(look, span + i * part, span + (i + 1) * part, small);
        }
    }
}

static void heap_each_leaf(struct look *look) {
    const struct shadow_heap *heap = look->heap;
    uint8_t *leaf = heap->root != NULL ? LOAD_ACQUIRE(&heap->root[NEWEST]) : NULL;
    look->pagemap = leaf != NULL ? written_pages_open() : -1;
    for (; leaf != NULL; leaf = heap_link(heap, leaf)->older) {
        uintptr_t span = heap_link(heap, leaf)->span;
        if (LOAD_ACQUIRE(&heap->root[span >> MEMTRACE_SPAN_SHIFT]) == leaf) {
            look->leaf = leaf;
            heap_each_part(look, span, 1);
            heap_each_part(look, span, 0);
        }
    }
    sys_close(look->pagemap);
}

struct visitor {
    void (*visit)(void *argument, const struct heap_block *block);
    void *argument;
};

static void heap_visit_between(const struct look *look, uintptr_t from, uintptr_t to, int small) {
    const struct visitor *visitor = look->what;
    const struct shadow_heap *heap = look->heap;
    struct heap_block block;
    uintptr_t step = small ? (uintptr_t)1 << heap->granule_shift : FINE_SIZE_LIMIT;
    for (uintptr_t at = from; at < to; at += step) {
        if (heap_decode(heap, look->leaf, at, small, &block)) {
            block.birth_tick |=
                small ? (uint32_t)*heap_birth_high(heap, look->leaf, at) << TICK_LOW_BITS : 0;
            visitor->visit(visitor->argument, &block);
        }
    }
}

void heap_visit(const struct shadow_heap *heap,
                void (*visit)(void *argument, const struct heap_block *block), void *argument) {
    const struct visitor visitor = {visit, argument};
    struct look look = {.heap = heap, .between = heap_visit_between, .what = &visitor};
    heap_each_leaf(&look);
}

uintptr_t heap_next_span(const struct shadow_heap *heap, uintptr_t from) {
    uint8_t *leaf = heap->root != NULL ? LOAD_ACQUIRE(&heap->root[NEWEST]) : NULL;
    uintptr_t next = UINTPTR_MAX;
    for (; leaf != NULL; leaf = heap_link(heap, leaf)->older) {
        uintptr_t span = heap_link(heap, leaf)->span;
        if (span >= from && span < next &&
            LOAD_ACQUIRE(&heap->root[span >> MEMTRACE_SPAN_SHIFT]) == leaf) {
            next = span;
        }
    }
    return next;
}

/* --- numbers in the middle of a run ------------------------------------------------------------
 *
 * A recording that begins in the middle of a run names the blocks that are there (heap_name_all),
 * while threads allocate and free. Who frees takes the record out first and then asks for the
 * number, who allocates puts the record in first and then claims a number, and who names claims
 * first and then looks at the record; each by an instruction that keeps this order. So a block that
 * is named is seen by whoever frees it, or its naming is taken back; and one that is allocated just
 * now has one name, from whoever was first. */

int heap_claim_number(const struct shadow_heap *heap, uintptr_t address, uint32_t number) {
    uint8_t *leaf = heap_leaf(heap, address);
    uint32_t none = 0;
    return leaf == NULL ||
           __atomic_compare_exchange_n(heap_number(heap, leaf, address), &none, number, 0,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void heap_unclaim_number(const struct shadow_heap *heap, uintptr_t address, uint32_t number) {
    uint8_t *leaf = heap_leaf(heap, address);
    if (leaf != NULL) {
        __atomic_compare_exchange_n(heap_number(heap, leaf, address), &number, 0u, 0,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
}

uint32_t heap_take_number_locked(const struct shadow_heap *heap, uintptr_t address) {
    uint8_t *leaf = heap_leaf(heap, address);
    return leaf == NULL
               ? 0
               : __atomic_exchange_n(heap_number(heap, leaf, address), 0u, __ATOMIC_SEQ_CST);
}

/* A claim that finds no record is taken back. Where that fails, the block was freed by this very
 * number: it is told of as it was. Where it does not, a block may have come that found the claim.
 */
static void heap_name_at(const struct shadow_heap *heap, uint8_t *leaf, uintptr_t at, int small,
                         const struct heap_naming *naming) {
    struct heap_block block;
    while (heap_decode(heap, leaf, at, small, &block) &&
           LOAD_RELAXED(heap_number(heap, leaf, block.start)) == 0) {
        uint32_t *place = heap_number(heap, leaf, block.start);
        uint32_t number = naming->next(naming->argument);
        uint32_t mine = number;
        struct heap_block now;
        if (number == 0 || !heap_claim_number(heap, block.start, number)) {
            return;
        }
        if (heap_decode(heap, leaf, at, small, &now) && now.start == block.start) {
            naming->named(naming->argument, &now);
            return;
        }
        if (!__atomic_compare_exchange_n(place, &mine, 0u, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            naming->named(naming->argument, &block);
            return;
        }
    }
}

static void heap_name_between(const struct look *look, uintptr_t from, uintptr_t to, int small) {
    uintptr_t step = small ? (uintptr_t)1 << look->heap->granule_shift : FINE_SIZE_LIMIT;
    for (uintptr_t at = from; at < to; at += step) {
        if (!small || LOAD_RELAXED(heap_fine(look->heap, look->leaf, at)) != 0) {
            heap_name_at(look->heap, look->leaf, at, small, look->what);
        }
    }
}

void heap_name_all(const struct shadow_heap *heap, const struct heap_naming *naming) {
    struct look look = {.heap = heap, .between = heap_name_between, .what = naming};
    heap_each_leaf(&look);
}

void heap_forget_numbers(const struct shadow_heap *heap) {
    uint8_t *leaf = heap->root != NULL ? LOAD_ACQUIRE(&heap->root[NEWEST]) : NULL;
    for (; leaf != NULL; leaf = heap_link(heap, leaf)->older) {
        sys_discard(heap_number(heap, leaf, heap_link(heap, leaf)->span),
                    heap_fine_items(heap) * sizeof(uint32_t));
    }
}

static int heap_contains(const struct heap_block *block, uintptr_t address) {
    uint64_t size = block->size != 0 ? block->size : 1;
    return address >= block->start && address - block->start < size;
}

int heap_find_small(const struct shadow_heap *heap, uintptr_t address, uintptr_t limit,
                    struct heap_block *block) {
    uintptr_t step = (uintptr_t)1 << heap->granule_shift;
    uintptr_t granule = address & ~(step - 1);
    for (uintptr_t back = 0; back <= FINE_SIZE_LIMIT && back <= granule; back += step) {
        uint8_t *leaf = heap_leaf(heap, granule - back);
        if (leaf != NULL && heap_decode_fine(heap, leaf, granule - back, block) &&
            block->start < limit && heap_contains(block, address)) {
            block->birth_tick |= (uint32_t)*heap_birth_high(heap, leaf, granule - back)
                                 << TICK_LOW_BITS;
            return 1;
        }
    }
    return 0;
}

static int heap_find_coarse(const struct shadow_heap *heap, uintptr_t address,
                            struct heap_block *block) {
    uintptr_t at = address & ~(uintptr_t)(FINE_SIZE_LIMIT - 1);
    for (;;) {
        uint8_t *leaf = heap_leaf(heap, at);
        if (leaf == NULL) { /* no block starts in the whole span: on to the one before */
            at &= ~(uintptr_t)(SPAN_BYTES - 1);
        } else if (heap_decode_coarse(heap, leaf, at, block) && block->start <= address) {
            return heap_contains(block, address);
        }
        if (at < FINE_SIZE_LIMIT) {
            return 0;
        }
        at -= FINE_SIZE_LIMIT;
    }
}

int heap_find(const struct shadow_heap *heap, uintptr_t address, uint32_t tick,
              struct heap_block *block) {
    if (heap->root == NULL || (uint64_t)address >> MACHINE_ADDRESS_BITS != 0) {
        return 0;
    }
    if (heap_find_small(heap, address, address + 1, block)) {
        return 1;
    }
    if (!heap_find_coarse(heap, address, block)) {
        return 0;
    }
    block->birth_tick = heap_whole_birth(block->birth_tick, tick);
    return 1;
}
