/* SPDX-License-Identifier: MIT */
/* Tests of runtime/heap/shadow_heap.c: who owns this block, by any address inside it. */
#include "runtime/heap/shadow_heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>

#include <cmocka.h>

static struct shadow_heap heap;

static int open_heap(void **state) {
    (void)state;
    return heap_init(&heap, MEMTRACE_FINE_SHIFT);
}

static void insert(uintptr_t start, uint64_t size, uint32_t context) {
    struct heap_block block = {.size = size, .context = context, .thread = 3, .birth_tick = 77};
    block.start = start;
    assert_int_equal(heap_insert(&heap, &block), 0);
}

static void check(uintptr_t address, uintptr_t start, uint64_t size, uint32_t context) {
    struct heap_block found;
    assert_int_equal(heap_find(&heap, address, 77, &found), 1);
    assert_int_equal(found.start, start);
    assert_int_equal(found.size, size);
    assert_int_equal(found.context, context);
    assert_int_equal(found.thread, 3);
    assert_int_equal(found.birth_tick, 77);
}

static void small_blocks(void **state) {
    struct heap_block found;
    const uintptr_t base = UINT64_C(0x7f1234560010);
    (void)state;
    for (uintptr_t i = 0; i < 1000; i++) {
        insert(base + i * 32, 20, 5 + (uint32_t)i);
    }
    for (uintptr_t i = 0; i < 1000; i++) {
        check(base + i * 32, base + i * 32, 20, 5 + (uint32_t)i);
        check(base + i * 32 + 19, base + i * 32, 20, 5 + (uint32_t)i);
    }
    for (uintptr_t i = 0; i < 1000; i += 200) { /* a miss looks far back for a large block */
        assert_int_equal(heap_find(&heap, base + i * 32 + 20, 77, &found), 0);
    }
    assert_int_equal(heap_find(&heap, base - 8, 77, &found), 0);
    assert_int_equal(heap_find(&heap, 0, 77, &found), 0);
    assert_int_equal(heap_find(&heap, UINTPTR_MAX, 77, &found), 0);
}

static void sizes_around_the_limit(void **state) {
    static const uint64_t sizes[] = {1, 32, 1008, 1023, 1024, 1025, 1 << 20, UINT64_C(1) << 30};
    uintptr_t start = UINT64_C(0x550000000010);
    struct heap_block found;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        insert(start, sizes[i], 9);
        check(start, start, sizes[i], 9);
        check(start + sizes[i] / 2, start, sizes[i], 9);
        check(start + sizes[i] - 1, start, sizes[i], 9);
        assert_int_equal(heap_find(&heap, start + sizes[i], 77, &found), 0);
        start += (sizes[i] + 64 + 15) & ~UINT64_C(15);
    }
}

/* Out again by its start only; nothing is left; what lies next to it stays. */
static void removing(void **state) {
    struct heap_block block;
    const uintptr_t base = UINT64_C(0x7e0000000010);
    (void)state;
    insert(base, 0, 11); /* malloc(0) */
    insert(base + 32, 24, 12);
    insert(base + 64, 5000, 13);
    assert_int_equal(heap_remove(&heap, base + 40, 0, &block), 0);
    assert_int_equal(heap_remove(&heap, base + 64 + 2048, 0, &block), 0);
    assert_int_equal(heap_remove(&heap, base, 0, &block), 1);
    assert_int_equal(block.size, 0);
    assert_int_equal(block.context, 11);
    assert_int_equal(heap_remove(&heap, base, 0, &block), 0);
    check(base + 32, base + 32, 24, 12);
    assert_int_equal(heap_remove(&heap, base + 32, 0, &block), 1);
    assert_int_equal(block.context, 12);
    assert_int_equal(heap_remove(&heap, base + 64, 0, &block), 1);
    assert_int_equal(block.size, 5000);
    assert_int_equal(heap_find(&heap, base + 64, 77, &block), 0);
    assert_int_equal(heap_remove(&heap, UINT64_C(0x10), 0, &block), 0);
}

/* A record in the way is not overwritten: it tells of a free that was missed. */
static void records_in_the_way(void **state) {
    static const uint64_t sizes[] = {40, 5000};
    struct heap_block block = {.context = 21, .thread = 4, .birth_tick = 99};
    struct heap_block stale;
    (void)state;
    for (int small = 1; small >= 0; small--) {
        uintptr_t base = UINT64_C(0x7a0000000010) + (uintptr_t)(1 - small) * 65536;
        insert(base, sizes[1 - small], 20);
        block.start = base + 8; /* in the same granule */
        block.size = sizes[1 - small];
        assert_int_equal(heap_remove(&heap, base + 8, 0, &stale), 0);
        assert_int_equal(heap_insert(&heap, &block), HEAP_STALE);
        check(base, base, block.size, 20);
        assert_int_equal(heap_starts_in_granule(&heap, base, !small), 0);
        assert_int_equal(heap_starts_in_granule(&heap, base, small), 1);
        assert_int_equal(heap_starts_in_granule(&heap, base + 32, small), 0);
        assert_int_equal(heap_remove_stale(&heap, base + 8, small, 0, &stale), 1);
        assert_int_equal(stale.start, base);
        assert_int_equal(stale.context, 20);
        assert_int_equal(stale.birth_tick, 77);
        assert_int_equal(heap_remove_stale(&heap, base + 8, small, 0, &stale), 0);
        assert_int_equal(heap_insert(&heap, &block), 0);
    }
    /* A block of its own size may be noted anew. */
    block.context = 22;
    heap_replace(&heap, &block);
    assert_int_equal(heap_remove(&heap, block.start, 0, &stale), 1);
    assert_int_equal(stale.context, 22);
}

/* A large block is found although a small one's record stands where it begins. */
static void a_large_block_behind_a_stale_record(void **state) {
    const uintptr_t base = UINT64_C(0x790000000010);
    struct heap_block block;
    (void)state;
    insert(base, 40, 23);
    insert(base + 8, 5000, 24);
    assert_int_equal(heap_remove(&heap, base + 8, 0, &block), 1);
    assert_int_equal(block.context, 24);
}

static void births_beyond_16_bits(void **state) {
    static const uint32_t births[] = {0, 65535, 65536, 0x12345678, UINT32_MAX, 1 << 20};
    uintptr_t start = UINT64_C(0x7d0000000000);
    (void)state;
    for (size_t i = 0; i < sizeof births / sizeof births[0]; i++, start += 8192) {
        for (uint64_t size = 100; size <= 2100; size += 2000) {
            struct heap_block block = {.size = size, .context = 5, .birth_tick = births[i]};
            struct heap_block seen, found;
            block.start = start;
            assert_int_equal(heap_insert(&heap, &block), 0);
            assert_int_equal(heap_find(&heap, start + size / 2, births[i], &seen), 1);
            assert_int_equal(heap_remove(&heap, start, births[i], &found), 1);
            assert_int_equal(found.birth_tick, births[i]);
            assert_int_equal(seen.birth_tick, births[i]); /* of large blocks 28 bits are kept */
        }
    }
}

static void ages_are_never_negative(void **state) {
    (void)state;
    assert_int_equal(heap_age(100, 100), 0);
    assert_int_equal(heap_age(101, 100), 0);
    assert_int_equal(heap_age(1 << 28, 100), 0);
    assert_int_equal(heap_age(100, 101), 1);
    assert_int_equal(heap_age(0, 0xefffffff), 0xefffffff); /* 195 days */
    assert_int_equal(heap_age(UINT32_MAX, 4), 5);
}

static uint32_t found_birth(uintptr_t start, uint64_t size, uint32_t birth, uint32_t tick) {
    struct heap_block block = {.size = size, .context = 5, .birth_tick = birth, .start = start};
    struct heap_block found = {0};
    assert_int_equal(heap_insert(&heap, &block), 0);
    assert_int_equal(heap_remove(&heap, start, tick, &found), 1);
    return found.birth_tick;
}

/* Who frees a block may have looked at the clock earlier than who allocated it, or much later; the
 * clock may be about to outgrow what is kept of a birth. */
static void births_by_other_clocks(void **state) {
    static const uint32_t ticks[] = {
        5, 65535, 65536, 65600, (1 << 28) - 1, 1 << 28, UINT32_MAX - 2000};
    const uintptr_t start = UINT64_C(0x7b0000000000);
    (void)state;
    for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
        for (uint64_t size = 100; size <= 2100; size += 2000) {
            for (uint32_t lag = 0; lag <= 1000; lag += 100) { /* in turn: what was there stays */
                assert_int_equal(found_birth(start, size, ticks[i] + lag, ticks[i]),
                                 ticks[i] + lag);
                if (ticks[i] >= lag) {
                    assert_int_equal(found_birth(start, size, ticks[i] - lag, ticks[i]),
                                     ticks[i] - lag);
                }
            }
        }
    }
    assert_int_equal(found_birth(start, 5000, 7, 7 + 0x0effffff), 7); /* 12 days */
}

/* Blocks at the end of a leaf, and large ones that reach into the next. */
static void across_leaves(void **state) {
    const uintptr_t border = UINT64_C(0x7c0000000000);
    struct heap_block found;
    (void)state;
    insert(border - 32, 32, 21);
    insert(border - 4096, 2048, 22);
    insert(border, 16, 23);
    check(border - 1, border - 32, 32, 21);
    check(border - 4096 + 2047, border - 4096, 2048, 22);
    check(border, border, 16, 23);
    insert(border + SPAN_BYTES - 2048, 5000, 24);
    check(border + SPAN_BYTES + 100, border + SPAN_BYTES - 2048, 5000, 24);
    assert_int_equal(heap_remove(&heap, border + SPAN_BYTES - 2048, 0, &found), 1);
    assert_int_equal(heap_find(&heap, border + SPAN_BYTES + 100, 77, &found), 0);
}

struct seen {
    size_t blocks;
    uint64_t bytes;
    uintptr_t starts; /* their sum */
};

static void count_block(void *argument, const struct heap_block *block) {
    struct seen *seen = argument;
    seen->blocks++;
    seen->bytes += block->size;
    seen->starts += block->start;
}

static void visits_every_block(void **state) {
    struct shadow_heap own;
    struct seen seen = {0};
    (void)state;
    assert_int_equal(heap_init(&own, MEMTRACE_FINE_SHIFT), 0);
    for (uintptr_t i = 0; i < 500; i++) {
        struct heap_block block = {.size = 10 + i * 8, .context = 4};
        block.start = UINT64_C(0x600000000000) + i * (UINT64_C(1) << 20);
        assert_int_equal(heap_insert(&own, &block), 0);
    }
    heap_visit(&own, count_block, &seen);
    assert_int_equal(seen.blocks, 500);
    assert_int_equal(seen.bytes, 500 * 10 + 8 * 499 * 500 / 2);
    assert_int_equal(seen.starts,
                     500 * UINT64_C(0x600000000000) + (UINT64_C(1) << 20) * 499 * 500 / 2);
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static uint32_t name_next(void *argument) {
    uint32_t *last = argument;
    return ++*last;
}

static void named(void *argument, const struct heap_block *block) {
    (void)argument;
    (void)block;
}

/* A leaf of one small and one large block has 2,000 pages that nobody wrote. */
static void visits_map_nothing(void **state) {
    struct shadow_heap own = {.numbered = 1};
    struct seen seen = {0};
    uint32_t last = 0;
    const struct heap_naming naming = {name_next, named, &last};
    struct heap_block small = {.size = 100, .context = 4, .start = UINT64_C(0x600000004000)};
    struct heap_block large = {.size = 9000, .context = 4, .start = UINT64_C(0x600001800000)};
    long before;
    (void)state;
    assert_int_equal(heap_init(&own, MEMTRACE_FINE_SHIFT), 0);
    assert_int_equal(heap_insert(&own, &small), 0);
    assert_int_equal(heap_insert(&own, &large), 0);
    before = faults();
    heap_visit(&own, count_block, &seen);
    heap_name_all(&own, &naming);
    assert_in_range(faults() - before, 0, 40);
    assert_int_equal(seen.blocks, 2);
    assert_int_equal(seen.bytes, 9100);
    assert_int_equal(last, 2);
    assert_int_equal(heap_take_number(&own, small.start) + heap_take_number(&own, large.start), 3);
}

/* As many addresses as the machine has are kept, and those who read a program know how many. */
static void highest_addresses(void **state) {
    const uintptr_t end = (uintptr_t)1 << MACHINE_ADDRESS_BITS;
    struct heap_block beyond = {.size = 20, .context = 5, .start = end};
    (void)state;
    assert_int_equal(memtrace_address_bits(MACHINE_ELF), MACHINE_ADDRESS_BITS);
    insert(end - 4096, 20, 5);
    check(end - 4096, end - 4096, 20, 5);
    insert(end - 2048, 1500, 6);
    check(end - 1000, end - 2048, 1500, 6);
    assert_int_equal(heap_insert(&heap, &beyond), HEAP_NO_ROOM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_blocks),
        cmocka_unit_test(sizes_around_the_limit),
        cmocka_unit_test(removing),
        cmocka_unit_test(records_in_the_way),
        cmocka_unit_test(a_large_block_behind_a_stale_record),
        cmocka_unit_test(births_beyond_16_bits),
        cmocka_unit_test(ages_are_never_negative),
        cmocka_unit_test(births_by_other_clocks),
        cmocka_unit_test(across_leaves),
        cmocka_unit_test(visits_every_block),
        cmocka_unit_test(visits_map_nothing),
        cmocka_unit_test(highest_addresses),
    };
    return cmocka_run_group_tests(tests, open_heap, NULL);
}
