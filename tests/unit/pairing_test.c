/* SPDX-License-Identifier: MIT */
/* pairing_test.c: analyze/replay/pairing: every end finds its block; memory follows what lives. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/pairing.h"

#include <malloc.h>
#include <stdlib.h>

static struct event_block name_of(uint32_t thread, uint64_t number) {
    return (struct event_block){.thread = thread, .number = number};
}

static int add(struct pairing *pairing, uint32_t thread, uint64_t number, uint64_t size) {
    struct pairing_block block = {.size = size, .context = (uint32_t)(number % 1000)};
    struct pairing_end end;
    return pairing_add(pairing, name_of(thread, number), &block, &end);
}

/* The size of the block that ends; 0: not known. */
static uint64_t take(struct pairing *pairing, uint32_t thread, uint64_t number) {
    struct pairing_block block = {0};
    if (!pairing_take(pairing, name_of(thread, number), &block)) {
        return 0;
    }
    assert_int_equal(block.context, number % 1000);
    return block.size;
}

static void begin_and_end(void **state) {
    struct pairing *pairing = pairing_new();
    (void)state;
    assert_int_equal(take(pairing, 1, 1), 0);
    assert_int_equal(add(pairing, 1, 1, 10), 0);
    assert_int_equal(add(pairing, 2, 1, 20), 0);
    assert_int_equal(take(pairing, 1, 2), 0);
    assert_int_equal(take(pairing, 2, 1), 20);
    assert_int_equal(take(pairing, 2, 1), 0);
    assert_int_equal(take(pairing, 1, 1), 10);
    pairing_free(pairing);
    pairing_free(NULL);
}

/* Names that no writer gives: nothing happens. */
static void impossible_names(void **state) {
    struct pairing *pairing = pairing_new();
    const struct pairing_end end = {0};
    (void)state;
    assert_int_equal(add(pairing, 1, 0, 10), 0);
    assert_int_equal(add(pairing, 4096, 1, 10), 0);
    assert_int_equal(add(pairing, 1, UINT64_C(1) << 48, 10), 0);
    assert_int_equal(take(pairing, 1, 0), 0);
    assert_int_equal(take(pairing, 4096, 1), 0);
    assert_int_equal(take(pairing, 1, UINT64_C(1) << 48), 0);
    pairing_wait(pairing, name_of(UINT32_MAX, 1), end);
    assert_int_equal(pairing_waiting(pairing), 0);
    /* The largest number there is, then the smallest: a long way, done in no time. */
    assert_int_equal(add(pairing, 1, (UINT64_C(1) << 48) - 1, 11), 0);
    assert_int_equal(add(pairing, 1, 1, 12), 0);
    assert_int_equal(take(pairing, 1, 1), 12);
    assert_int_equal(take(pairing, 1, (UINT64_C(1) << 48) - 1), 11);
    pairing_free(pairing);
}

static void end_before_beginning(void **state) {
    struct pairing *pairing = pairing_new();
    const struct pairing_block block = {.size = 10};
    struct pairing_end end = {0};
    (void)state;
    pairing_wait(pairing, name_of(3, 7), (struct pairing_end){5, 99, 7});
    pairing_wait(pairing, name_of(3, 9), (struct pairing_end){6, 100, 8});
    assert_int_equal(pairing_waiting(pairing), 2);
    assert_int_equal(pairing_add(pairing, name_of(3, 6), &block, &end), 0);
    assert_int_equal(pairing_add(pairing, name_of(3, 7), &block, &end), 1);
    assert_int_equal(end.thread, 5);
    assert_int_equal(end.time_ns, 7);
    assert_int_equal(end.tick, 99);
    assert_int_equal(take(pairing, 3, 7), 0); /* it never lived */
    assert_int_equal(pairing_add(pairing, name_of(3, 8), &block, &end), 0);
    assert_int_equal(pairing_waiting(pairing), 1);
    pairing_free(pairing);
}

/* Against a plain array: threads whose blocks live short, long, or for ever, freed in any order. */
static void random_streams(void **state) {
    enum { THREADS = 5, NUMBERS = 60000, EVENTS = 400000 };
    uint64_t(*size)[NUMBERS] = calloc(THREADS, sizeof *size);
    uint64_t next[THREADS] = {0};
    struct pairing *pairing = pairing_new();
    (void)state;
    srand(7);
    for (int i = 0; i < EVENTS; i++) {
        uint32_t thread = (uint32_t)rand() % THREADS;
        if (rand() % 2 && next[thread] + 1 < NUMBERS) {
            uint64_t number = ++next[thread];
            if (rand() % 50 == 0) {
                continue; /* not recorded */
            }
            size[thread][number] = (uint64_t)rand() + 1;
            assert_int_equal(add(pairing, thread, number, size[thread][number]), 0);
        } else if (next[thread] != 0) {
            uint64_t back = rand() % 4 != 0 ? (uint64_t)rand() % 40 : (uint64_t)rand();
            uint64_t number = next[thread] - back % next[thread];
            assert_int_equal(take(pairing, thread, number), size[thread][number]);
            size[thread][number] = 0;
        }
    }
    for (uint32_t thread = 0; thread < THREADS; thread++) {
        for (uint64_t number = 1; number <= next[thread]; number++) {
            assert_int_equal(take(pairing, thread, number), size[thread][number]);
        }
    }
    pairing_free(pairing);
    free(size);
}

/* Runs of several streams under one thread id come in any order. */
static void numbers_in_runs(void **state) {
    struct pairing *pairing = pairing_new();
    (void)state;
    for (uint64_t run = 0; run < 200; run++) {
        uint64_t first = 1 + (run ^ 1) * 1000; /* every second run late */
        for (uint64_t number = first; number < first + 1000; number++) {
            assert_int_equal(add(pairing, MEMTRACE_THREAD_OTHERS, number, number), 0);
        }
    }
    for (uint64_t number = 1; number <= 200000; number++) {
        assert_int_equal(take(pairing, MEMTRACE_THREAD_OTHERS, number), number);
    }
    pairing_free(pairing);
}

/* Ten million blocks of which a thousand live at a time take no more than those few. */
static void memory_follows_live_blocks(void **state) {
    enum { LIVE = 1000, EVENTS = 10000000 };
    struct pairing *pairing = pairing_new();
    struct mallinfo2 before = mallinfo2();
    size_t grown;
    (void)state;
    for (uint64_t number = 1; number <= EVENTS; number++) {
        add(pairing, 1, number, number);
        if (number > LIVE) {
            assert_int_equal(take(pairing, 1, number - LIVE), number - LIVE);
        }
    }
    grown = mallinfo2().uordblks + mallinfo2().hblkhd - before.uordblks - before.hblkhd;
    assert_true(grown < 1 << 20);
    pairing_free(pairing);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begin_and_end),        cmocka_unit_test(impossible_names),
        cmocka_unit_test(end_before_beginning), cmocka_unit_test(random_streams),
        cmocka_unit_test(numbers_in_runs),      cmocka_unit_test(memory_follows_live_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
