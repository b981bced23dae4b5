/* SPDX-License-Identifier: MIT */
/* Tests of runtime/heap/peak.c: exact alone, within the stated bound among threads. */
#include "runtime/heap/peak.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS = 4, EVENTS = 50000 };

static void change(struct peak_share *share, struct memtrace_header *header, int64_t size) {
    if (size > 0) {
        peak_grow(share, header, (uint64_t)size);
    } else {
        peak_shrink(share, header, (uint64_t)-size);
    }
}

static void alone_it_is_exact(void **state) {
    struct memtrace_header *header = calloc(1, sizeof *header);
    struct peak_share share;
    int64_t live = 0, maximum = 0;
    (void)state;
    srand(3);
    peak_join(&share, header, 1);
    for (int i = 0; i < EVENTS; i++) {
        int64_t size = rand() % 100000;
        if (rand() % 2 == 0) {
            size = live < size ? -live : -size;
        }
        change(&share, header, size);
        live += size;
        maximum = live > maximum ? live : maximum;
        assert_int_equal(header->maximum_bytes, maximum);
        assert_int_equal(maximum - share.room, live);
    }
    peak_flush(&share, header);
    assert_int_equal(header->live_bytes, live);
    free(header);
}

/* Cells keep what they held when the maximum was seen to be over: one thread that climbs to just
 * below a step and falls as far below where it was. */
static void seen_late_it_is_within_the_bound(void **state) {
    struct memtrace_header *header = calloc(1, sizeof *header);
    struct peak_share share;
    int64_t live = 0, maximum = 0, kept = 0;
    (void)state;
    peak_join(&share, header, 1);
    peak_become_shared(&share, header);
    for (int i = 0; i < 1300; i++) { /* 1,300,000 bytes: the last step is not full */
        change(&share, header, 1000);
        maximum = live += 1000;
    }
    while (live > 0 && (header->peak_epoch & 1) != 0) {
        kept = live;
        change(&share, header, -1000);
        live -= 1000;
    }
    assert_int_equal(header->peak_epoch & 1, 0);
    assert_in_range(maximum - kept, 65537, (int64_t)header->peak_error_bytes);
    free(header);
}

/* Several shares in one thread, so that the true maximum is known. */
static void shared_it_is_within_the_bound(void **state) {
    struct memtrace_header *header = calloc(1, sizeof *header);
    struct peak_share share[THREADS];
    int64_t live = 0, maximum = 0;
    (void)state;
    srand(5);
    peak_join(&share[0], header, 1);
    change(&share[0], header, live = maximum = 12345);
    peak_become_shared(&share[0], header);
    for (int i = 1; i < THREADS; i++) {
        peak_join(&share[i], header, 0);
    }
    for (int i = 0; i < EVENTS; i++) {
        int64_t size = rand() % 20000;
        if (rand() % 2 == 0) {
            size = live < size ? -live : -size;
        }
        change(&share[rand() % THREADS], header, size);
        live += size;
        maximum = live > maximum ? live : maximum;
        assert_true(llabs(maximum - header->maximum_bytes) <= (int64_t)header->peak_error_bytes);
    }
    assert_true(header->flags & MEMTRACE_FLAG_THREADED);
    for (int i = 0; i < THREADS; i++) {
        peak_leave(&share[i], header);
    }
    assert_int_equal(header->live_bytes, live);
    assert_int_equal(header->peak_threads, 0);
    free(header);
}

static void *grow_and_shrink(void *argument) {
    struct memtrace_header *header = argument;
    struct peak_share share;
    peak_join(&share, header, 0);
    for (int i = 0; i < EVENTS; i++) {
        peak_grow(&share, header, 1000);
    }
    for (int i = 0; i < EVENTS - 10; i++) {
        peak_shrink(&share, header, 1000);
    }
    peak_leave(&share, header);
    return NULL;
}

static void threads_lose_nothing(void **state) {
    struct memtrace_header *header = calloc(1, sizeof *header);
    pthread_t thread[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, grow_and_shrink, header), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    assert_int_equal(header->live_bytes, THREADS * 10 * 1000);
    /* At least one thread's whole growth, short of one step; at most all of them at once. */
    assert_true(header->maximum_bytes >= EVENTS * INT64_C(1000) - 300000);
    assert_true(header->maximum_bytes <= THREADS * EVENTS * INT64_C(1000));
    free(header);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_is_exact),
        cmocka_unit_test(seen_late_it_is_within_the_bound),
        cmocka_unit_test(shared_it_is_within_the_bound),
        cmocka_unit_test(threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
