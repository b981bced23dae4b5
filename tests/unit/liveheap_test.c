/* SPDX-License-Identifier: MIT */
/*
 * liveheap_test.c: blocks in shadow heaps built by hand in this process, which is also the one
 * that is read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/read/liveheap.h"
#include "memtrace/blocks.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SPANS = 1 << (47 - MEMTRACE_SPAN_SHIFT) };
#define SPAN (UINT64_C(1) << MEMTRACE_SPAN_SHIFT)
#define TICK (UINT64_C(1) << MEMTRACE_TICK_SHIFT)

/* The spans 100, 101 and 300 of the heap and 100 of the pools have leaves. */
#define BASE (100 * SPAN)

static uint64_t *roots[2];
static struct memtrace_header header;
static struct liveheap_block block;

static void *map(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static unsigned shift_of(int pool) {
    return pool ? MEMTRACE_POOL_SHIFT : MEMTRACE_FINE_SHIFT;
}

static uint64_t add_leaf(int pool, uint64_t address) {
    uint64_t *place = &roots[pool][address >> MEMTRACE_SPAN_SHIFT];
    if (!*place)
        *place = (uintptr_t)map((SPAN >> shift_of(pool)) * 10 + (SPAN >> 10) * 16);
    assert_true(*place != 0);
    return *place;
}

static void add_small(int pool, uint64_t start, uint64_t size, uint64_t context, uint64_t thread,
                      uint64_t birth) {
    uint64_t leaf = add_leaf(pool, start);
    uint64_t place = (start & (SPAN - 1)) >> shift_of(pool);
    uint64_t offset = (start & ((1u << shift_of(pool)) - 1)) / 8;
    ((uint64_t *)leaf)[place] =
        (context | size << MEMTRACE_BLOCK_SIZE_SHIFT | thread << MEMTRACE_BLOCK_THREAD_SHIFT |
         offset << MEMTRACE_BLOCK_OFFSET_SHIFT | birth << MEMTRACE_BLOCK_BIRTH_SHIFT) ^
        (start - 8 * offset) << MEMTRACE_BLOCK_ADDRESS_SHIFT;
    ((uint16_t *)(leaf + (SPAN >> shift_of(pool)) * 8))[place] = (uint16_t)(birth >> 16);
}

static void add_big(int pool, uint64_t start, uint64_t size, uint64_t context, uint64_t thread,
                    uint64_t birth) {
    uint64_t leaf = add_leaf(pool, start) + (SPAN >> shift_of(pool)) * 10;
    struct memtrace_big_block *record =
        (struct memtrace_big_block *)leaf + ((start & (SPAN - 1)) >> MEMTRACE_COARSE_SHIFT);
    record->size_offset = size | (start & 1023) << MEMTRACE_BIG_OFFSET_SHIFT;
    record->owner =
        context | thread << MEMTRACE_BIG_THREAD_SHIFT | birth << MEMTRACE_BIG_BIRTH_SHIFT;
}

static int set_up(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++)
        roots[i] = map(SPANS * sizeof **roots);
    if (!roots[0] || !roots[1])
        return -1;
    memset(&header, 0, sizeof header);
    header.machine = EM_X86_64; /* whose addresses have 47 bits */
    header.shadow_heap = (uintptr_t)roots[0];
    header.pool_heap = (uintptr_t)roots[1];
    header.start_monotonic_ns = 1000;
    return 0;
}

static int find(uint64_t address, uint64_t now_tick) {
    struct error error;
    return liveheap_find(getpid(), &header, address, 1000 + now_tick * TICK, &block, &error);
}

static void expect(uint64_t address, uint64_t start, uint64_t size, uint32_t context) {
    assert_int_equal(find(address, 100), 1);
    assert_int_equal(block.start, start);
    assert_int_equal(block.size, size);
    assert_int_equal(block.context, context);
}

static void finds_small_blocks(void **state) {
    (void)state;
    add_small(0, BASE + 64, 100, 5, 7, 40);
    add_small(0, BASE + 176, 1023, 6, 7, 40);
    expect(BASE + 64, BASE + 64, 100, 5);
    assert_int_equal(block.thread, 7);
    assert_int_equal(block.age_ns, 60 * TICK);
    assert_false(block.pool);
    expect(BASE + 163, BASE + 64, 100, 5);
    assert_int_equal(find(BASE + 164, 100), 0);
    assert_int_equal(find(BASE + 63, 100), 0);
    expect(BASE + 176, BASE + 176, 1023, 6);
    expect(BASE + 176 + 1022, BASE + 176, 1023, 6);
    assert_int_equal(find(BASE + 176 + 1023, 100), 0);
}

static void finds_blocks_across_leaves(void **state) {
    (void)state;
    uint64_t border = BASE + SPAN;
    add_small(0, border - 64, 500, 8, 1, 1);
    expect(border + 10, border - 64, 500, 8);
    add_leaf(0, border);
    expect(border + 10, border - 64, 500, 8);
    expect(border + 435, border - 64, 500, 8);
    assert_int_equal(find(border + 436, 100), 0);
}

static void finds_large_blocks(void **state) {
    (void)state;
    add_big(0, BASE + 5 * 1024 + 16, 3000, 9, 2, 10);
    expect(BASE + 5 * 1024 + 16, BASE + 5 * 1024 + 16, 3000, 9);
    assert_int_equal(block.thread, 2);
    assert_int_equal(block.age_ns, 90 * TICK);
    expect(BASE + 5 * 1024 + 16 + 2999, BASE + 5 * 1024 + 16, 3000, 9);
    assert_int_equal(find(BASE + 5 * 1024 + 16 + 3000, 100), 0);
    assert_int_equal(find(BASE + 5 * 1024 + 15, 100), 0);
}

/* 20 GiB: every span in between is without leaf but two. */
static void finds_very_large_blocks(void **state) {
    (void)state;
    uint64_t start = 300 * SPAN + 16;
    add_big(0, start, UINT64_C(20) << 30, 11, 3, 10);
    add_leaf(0, start + (UINT64_C(1) << 30));
    expect(start + (UINT64_C(19) << 30), start, UINT64_C(20) << 30, 11);
    expect(start + (UINT64_C(1) << 30) + 5, start, UINT64_C(20) << 30, 11);
    assert_int_equal(find(start + (UINT64_C(20) << 30), 100), 0);
}

static void prefers_the_innermost_block(void **state) {
    (void)state;
    uint64_t start = 400 * SPAN;
    add_big(0, start, 100000, 20, 1, 1);      /* a mapping */
    add_big(0, start + 4096, 5000, 21, 1, 1); /* a block in it */
    add_small(1, start + 4104, 24, 22, 1, 1); /* of a pool in that */
    expect(start + 100, start, 100000, 20);
    expect(start + 5000, start + 4096, 5000, 21);
    expect(start + 50000, start, 100000, 20);
    expect(start + 4127, start + 4104, 24, 22);
    assert_true(block.pool);
    expect(start + 4128, start + 4096, 5000, 21);
}

static void knows_old_and_empty_blocks(void **state) {
    (void)state;
    add_small(0, BASE + 8192, 0, 30, 1, UINT64_C(0x12345));
    assert_int_equal(find(BASE + 8192, 0x12345 + 9), 1);
    assert_int_equal(block.age_ns, 9 * TICK);
    assert_int_equal(block.size, 0);
    assert_int_equal(find(BASE + 8193, 0x12345 + 9), 0);
    /* Born a moment after we looked at the clock. */
    assert_int_equal(find(BASE + 8192, 0x12344), 1);
    assert_int_equal(block.age_ns, 0);
}

static void takes_any_address(void **state) {
    (void)state;
    const uint64_t addresses[] = {
        0, 1, 1023, UINT64_C(1) << 47, UINT64_MAX, SPAN - 1, (UINT64_C(1) << 47) - 1};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        assert_int_equal(find(addresses[i], 100), 0);
}

static void says_why_it_cannot(void **state) {
    (void)state;
    struct error error;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    assert_int_equal(liveheap_find(pid, &header, BASE, 0, &block, &error), -1);
    assert_non_null(strstr(error.message, "is gone"));
    struct memtrace_header wrong = {.shadow_heap = 4096};
    assert_int_equal(liveheap_find(getpid(), &wrong, BASE, 0, &block, &error), -1);
    assert_non_null(strstr(error.message, "cannot be read"));
    wrong.shadow_heap = 0;
    assert_int_equal(liveheap_find(getpid(), &wrong, BASE, 0, &block, &error), -1);
    assert_non_null(strstr(error.message, "keeps no record"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_small_blocks),          cmocka_unit_test(finds_blocks_across_leaves),
        cmocka_unit_test(finds_large_blocks),          cmocka_unit_test(finds_very_large_blocks),
        cmocka_unit_test(prefers_the_innermost_block), cmocka_unit_test(knows_old_and_empty_blocks),
        cmocka_unit_test(takes_any_address),           cmocka_unit_test(says_why_it_cannot),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
