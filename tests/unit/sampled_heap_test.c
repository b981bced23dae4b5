/* SPDX-License-Identifier: MIT */
/* Tests of runtime/heap/sampled_heap.c: what was put in is found once, by whomever, and nothing
 * else is; the filter never hides a block. */
#include "runtime/heap/sampled_heap.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MANY = 40000, THREADS = 4, ROUNDS = 30000 };

/* Different numbers have different addresses, many of them in the same 256 bytes. */
static uintptr_t address_of(uint64_t number) {
    return (uintptr_t)(0x7f0000000000 + number * 48);
}

static int put(uint64_t number) {
    struct memtrace_sampled_block block = {.size = number, .bytes = 2 * number, .count = 3};
    return sampled_heap_insert(address_of(number), &block);
}

static int get(uint64_t number) {
    struct memtrace_sampled_block block;
    if (!sampled_heap_remove(address_of(number), &block)) {
        return 0;
    }
    assert_true(block.size == number && block.bytes == 2 * number && block.count == 3);
    return 1;
}

/* More than one level holds. */
static void many(void **state) {
    struct memtrace_sampled_block block;
    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        assert_int_equal(put(i), 0);
        assert_true(sampled_heap_may_hold(address_of(i)));
    }
    assert_true(sampled_heap.level[1] != 0);
    assert_false(sampled_heap_remove(address_of(7) + 16, &block));
    for (uint64_t i = 0; i < MANY; i += 2) {
        assert_int_equal(get(i), 1);
        assert_int_equal(get(i), 0);
    }
    for (uint64_t i = 1; i < MANY; i += 2) {
        assert_true(sampled_heap_may_hold(address_of(i)));
        assert_int_equal(get(i), 1);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        assert_false(sampled_heap_may_hold(address_of(i)));
    }
}

/* 400 blocks whose addresses the filter cannot tell apart: more than its count can count. */
static void one_count(void **state) {
    const uintptr_t far = (uintptr_t)SAMPLED_FILTER_ITEMS << SAMPLED_FILTER_SHIFT;
    struct memtrace_sampled_block block = {.size = 1};
    (void)state;
    for (uintptr_t i = 0; i < 400; i++) {
        assert_int_equal(sampled_heap_insert(0x1000 + i * far, &block), 0);
    }
    for (uintptr_t i = 0; i < 400; i++) {
        assert_true(sampled_heap_may_hold(0x1000 + i * far));
        assert_int_equal(sampled_heap_remove(0x1000 + i * far, &block), 1);
    }
}

static void inside(void **state) {
    struct memtrace_sampled_block block = {.size = 100, .context = 9};
    struct memtrace_sampled_block found;
    uintptr_t start;
    (void)state;
    assert_int_equal(sampled_heap_insert(0x5000, &block), 0);
    assert_int_equal(sampled_heap_find(0x5000 + 99, &start, &found), 1);
    assert_true(start == 0x5000 && found.context == 9);
    assert_int_equal(sampled_heap_find(0x5000 + 100, &start, &found), 0);
    assert_int_equal(sampled_heap_find(0x4fff, &start, &found), 0);
    assert_int_equal(sampled_heap_remove(0x5000, &block), 1);
    assert_int_equal(sampled_heap_find(0x5000, &start, &found), 0);
}

/* Each thread has addresses of its own, as an allocator would give them. */
static void *work(void *argument) {
    uint64_t base = (uint64_t)(uintptr_t)argument;
    uintptr_t missed = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t number = 8 * (i % 5000) + base;
        missed += put(number) != 0;
        missed += !sampled_heap_may_hold(address_of(number));
        missed += !get(number) + (get(number) != 0);
    }
    return (void *)missed;
}

static void threads(void **state) {
    pthread_t thread[THREADS];
    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, work, (void *)i), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *missed;
        pthread_join(thread[i], &missed);
        assert_ptr_equal(missed, NULL);
    }
}

/* From the first byte to the last, and for good. */
static void expected(void **state) {
    const uintptr_t start = (uintptr_t)address_of(5) - 10000;
    (void)state;
    assert_false(sampled_heap_may_hold(start));
    sampled_heap_expect((const void *)start, 20001);
    for (uintptr_t i = 0; i < 20001; i += 16) {
        assert_true(sampled_heap_may_hold(start + i));
    }
    assert_true(sampled_heap_may_hold(start + 20000));
    assert_int_equal(put(5), 0);
    assert_int_equal(get(5), 1);
    assert_true(sampled_heap_may_hold(address_of(5)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many),    cmocka_unit_test(one_count), cmocka_unit_test(inside),
        cmocka_unit_test(threads), cmocka_unit_test(expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
