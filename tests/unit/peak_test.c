/* SPDX-License-Identifier: MIT */
/* Tests of runtime/heap/peak.c: exact alone, within the stated bound among threads. */
#include "runtime/heap/peak.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 4, QUIET_THREADS = 32, EVENTS = 50000 };

/* A thread. */
struct counted {
    struct peak_share share;
    struct memtrace_counts counts;
};

static struct memtrace_header *new_process(void) {
    peak_fork();
    return calloc(1, sizeof(struct memtrace_header));
}

static void join(struct counted *thread, struct memtrace_header *header, enum peak_mode mode) {
    thread->counts = (struct memtrace_counts){0};
    peak_join(&thread->share, header, &thread->counts, mode);
}

static void change(struct counted *thread, struct memtrace_header *header, int64_t size) {
    if (size > 0) {
        counter_add(&thread->counts.alloc_bytes, (uint64_t)size);
        counter_add(&thread->counts.alloc_count, 1);
        peak_grow(&thread->share, header, peak_live(&thread->counts));
    } else {
        counter_add(&thread->counts.free_bytes, (uint64_t)-size);
        counter_add(&thread->counts.free_count, 1);
        peak_shrink(&thread->share, header, peak_live(&thread->counts), (uint64_t)-size);
    }
}

/* Told at each event, seldom, or never before the end. */
static void is_exact_alone(int told_each) {
    struct memtrace_header *header = new_process();
    struct counted thread;
    int64_t live = 0, maximum = 0;
    srand(3);
    join(&thread, header, PEAK_ALONE);
    for (int i = 0; i < EVENTS; i++) {
        int64_t size = rand() % 100000;
        if (rand() % 2 == 0) {
            size = live < size ? -live : -size;
        }
        change(&thread, header, size);
        live += size;
        maximum = live > maximum ? live : maximum;
        assert_int_equal(header->peak_epoch & 1 || live == maximum, (header->peak_epoch & 1) != 0);
        if (rand() % told_each == 0) {
            peak_flush(&thread.share, header);
            assert_int_equal(header->maximum_bytes, maximum);
            assert_int_equal(header->live_bytes, live);
        }
    }
    peak_leave(&thread.share, header);
    assert_int_equal(header->maximum_bytes, maximum);
    assert_int_equal(header->live_bytes, live);
    assert_int_equal(header->flags & MEMTRACE_FLAG_THREADED, 0);
    free(header);
}

static void alone_it_is_exact(void **state) {
    (void)state;
    is_exact_alone(1);
    is_exact_alone(50);
    is_exact_alone(INT32_MAX);
}

/* Where the process held more before this thread came. */
static void alone_below_the_maximum(void **state) {
    struct memtrace_header *header = new_process();
    struct counted thread;
    (void)state;
    header->maximum_bytes = 1000;
    header->live_bytes = 400;
    join(&thread, header, PEAK_ALONE);
    change(&thread, header, 599);
    assert_int_equal(header->peak_epoch & 1, 0);
    change(&thread, header, 1);
    assert_int_equal(header->peak_epoch & 1, 0);
    change(&thread, header, 1);
    assert_int_equal(header->peak_epoch & 1, 1);
    peak_leave(&thread.share, header);
    assert_int_equal(header->maximum_bytes, 1001);
    free(header);
}

/* The first thread does not know of the second, and does nothing while that one does. */
static void a_quiet_first_thread_counts(void **state) {
    struct memtrace_header *header = new_process();
    struct counted first, second;
    int64_t bound;
    (void)state;
    join(&first, header, PEAK_ALONE);
    change(&first, header, 100 << 20);
    change(&first, header, -(30 << 20));
    change(&first, header, 10 << 20); /* 80 MiB, below its maximum: nothing of this was told */
    join(&second, header, PEAK_SHARED);
    change(&second, header, 50 << 20);
    assert_int_equal(first.share.mode, PEAK_SHARED);
    bound = (int64_t)header->peak_error_bytes;
    assert_uint_in_range(header->maximum_bytes, (130 << 20) - bound, 130 << 20);
    assert_true(header->flags & MEMTRACE_FLAG_THREADED);
    change(&first, header, -(70 << 20)); /* 10 and 50 */
    change(&second, header, 60 << 20);   /* 10 and 110: less than there were */
    assert_uint_in_range(header->maximum_bytes, (130 << 20) - bound, 130 << 20);
    change(&first, header, 40 << 20);
    bound = (int64_t)header->peak_error_bytes;
    assert_uint_in_range(header->maximum_bytes, (160 << 20) - bound, 160 << 20);
    peak_leave(&first.share, header);
    change(&second, header, 10 << 20);
    peak_leave(&second.share, header);
    assert_int_equal(header->live_bytes, 170 << 20);
    assert_int_equal(header->peak_threads, 0);
    free(header);
}

/* An event of the first thread is under way, its limits read, when the second one comes: what it
 * adds is told by the second one's next event, however long the first has none. */
static void an_event_under_way_is_told_soon(void **state) {
    struct memtrace_header *header = new_process();
    struct counted first, second;
    (void)state;
    join(&first, header, PEAK_ALONE);
    join(&second, header, PEAK_SHARED);
    first.counts.alloc_bytes += 64 << 20;
    change(&second, header, 1 << 20);
    assert_uint_in_range(header->maximum_bytes, 64 << 20, 65 << 20);
    peak_leave(&first.share, header);
    peak_leave(&second.share, header);
    assert_int_equal(header->live_bytes, 65 << 20);
    free(header);
}

/* Cells keep what they held when the maximum was seen to be over: one thread that climbs to just
 * below a step and falls as far below where it was. */
static void seen_late_it_is_within_the_bound(void **state) {
    struct memtrace_header *header = new_process();
    struct counted thread;
    int64_t live = 0, maximum = 0, kept = 0;
    (void)state;
    join(&thread, header, PEAK_ALONE);
    peak_become_shared(&thread.share, header);
    for (int i = 0; i < 1300; i++) { /* 1,300,000 bytes: the last step is not full */
        change(&thread, header, 1000);
        maximum = live += 1000;
    }
    while (live > 0 && (header->peak_epoch & 1) != 0) {
        kept = live;
        change(&thread, header, -1000);
        live -= 1000;
    }
    assert_int_equal(header->peak_epoch & 1, 0);
    assert_uint_in_range(maximum - kept, 65537, (int64_t)header->peak_error_bytes);
    free(header);
}

/* Threads that each hold little for a while: the peak, and its bound when they are gone. */
static void what_quiet_threads_hold_is_told(void **state) {
    enum { HELD = 60000 };
    struct memtrace_header *header = new_process();
    struct counted thread[QUIET_THREADS];
    int64_t most = (int64_t)QUIET_THREADS * HELD;
    (void)state;
    join(&thread[0], header, PEAK_ALONE);
    peak_become_shared(&thread[0].share, header);
    for (int i = 1; i < QUIET_THREADS; i++) {
        join(&thread[i], header, PEAK_SHARED);
    }
    for (int i = 0; i < QUIET_THREADS; i++) {
        change(&thread[i], header, HELD - 1000);
        change(&thread[i], header, 1000);
    }
    for (int i = 0; i < QUIET_THREADS; i++) {
        change(&thread[i], header, -HELD);
        peak_leave(&thread[i].share, header);
    }
    assert_uint_in_range(header->maximum_bytes, most - QUIET_THREADS * 4096, most);
    assert_uint_in_range(header->peak_error_bytes, most - header->maximum_bytes,
                         2 * QUIET_THREADS * 4096);
    free(header);
}

/* The bound is that of the time when it was largest: threads that were there then hold as much back
 * as they may. */
static void the_bound_outlives_its_threads(void **state) {
    enum { STEPS = 200, HELD_BACK = 60000 };
    struct memtrace_header *header = new_process();
    struct counted thread[THREADS];
    int64_t live = 0;
    (void)state;
    join(&thread[0], header, PEAK_ALONE);
    peak_become_shared(&thread[0].share, header);
    for (int i = 1; i < THREADS; i++) {
        join(&thread[i], header, PEAK_SHARED);
    }
    for (int i = 0; i < THREADS; i++) {
        for (int k = 0; k < STEPS; k++) { /* no credit is left */
            change(&thread[i], header, 100000);
            change(&thread[i], header, -100000);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        change(&thread[i], header, 100000);
        change(&thread[i], header, HELD_BACK);
        live += 100000 + HELD_BACK;
    }
    for (int i = THREADS - 1; i >= 0; i--) {
        change(&thread[i], header, -100000 - HELD_BACK);
        if (i != 0) {
            peak_leave(&thread[i].share, header);
        }
    }
    peak_flush(&thread[0].share, header);
    assert_uint_in_range(header->maximum_bytes, THREADS * 100000, live - HELD_BACK);
    assert_uint_in_range(header->peak_error_bytes, live - header->maximum_bytes,
                         2 * THREADS * 65536);
    peak_leave(&thread[0].share, header);
    free(header);
}

/* The first thread has ended, and its memory is another's by now: who comes does not touch it. */
static void an_ended_first_thread_is_left_alone(void **state) {
    struct memtrace_header *header = new_process();
    struct counted first, second;
    struct peak_share left;
    (void)state;
    join(&first, header, PEAK_ALONE);
    change(&first, header, 100);
    peak_leave(&first.share, header);
    memcpy(&left, &first.share, sizeof left);
    join(&second, header, PEAK_SHARED);
    change(&second, header, 50);
    peak_leave(&second.share, header);
    assert_memory_equal(&first.share, &left, sizeof left);
    assert_int_equal(header->live_bytes, 150);
    assert_int_equal(header->peak_threads, 0);
    free(header);
}

/* Several shares in one thread, so that the true maximum is known. */
static void shared_it_is_within_the_bound(void **state) {
    struct memtrace_header *header = new_process();
    struct counted thread[THREADS];
    int64_t live = 0, maximum = 0;
    (void)state;
    srand(5);
    join(&thread[0], header, PEAK_ALONE);
    change(&thread[0], header, live = maximum = 12345);
    peak_become_shared(&thread[0].share, header);
    for (int i = 1; i < THREADS; i++) {
        join(&thread[i], header, PEAK_SHARED);
    }
    for (int i = 0; i < EVENTS; i++) {
        int64_t size = rand() % 20000;
        if (rand() % 2 == 0) {
            size = live < size ? -live : -size;
        }
        change(&thread[rand() % THREADS], header, size);
        live += size;
        maximum = live > maximum ? live : maximum;
        assert_true(llabs(maximum - header->maximum_bytes) <= (int64_t)header->peak_error_bytes);
    }
    assert_true(header->flags & MEMTRACE_FLAG_THREADED);
    for (int i = 0; i < THREADS; i++) {
        peak_leave(&thread[i].share, header);
    }
    assert_int_equal(header->live_bytes, live);
    assert_int_equal(header->peak_threads, 0);
    free(header);
}

static void *grow_and_shrink(void *argument) {
    struct memtrace_header *header = argument;
    struct counted thread;
    join(&thread, header, PEAK_SHARED);
    for (int i = 0; i < EVENTS; i++) {
        change(&thread, header, 1000);
    }
    for (int i = 0; i < EVENTS - 10; i++) {
        change(&thread, header, -1000);
    }
    peak_leave(&thread.share, header);
    return NULL;
}

static void threads_lose_nothing(void **state) {
    struct memtrace_header *header = new_process();
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

/* Inherited blocks of `size` bytes in all go: as entry/child.c counts it. */
static void free_inherited(struct counted *thread, struct memtrace_header *header, int64_t size) {
    peak_before_inherited(&thread->share, header);
    header->maximum_bytes += size;
    header->live_bytes += size;
    peak_after_inherited(&thread->share, header, (uint64_t)size);
    change(thread, header, -size);
}

/* Both maxima are exact, however they alternate: that of all that it ever had, to which each
 * inherited block that goes adds in hindsight, and that of its own blocks, which others read. */
static void own_and_inherited(int steps_between, int told_each) {
    struct memtrace_header *header = new_process();
    struct counted thread;
    int64_t live = 0, highest = 0, own_highest = 0;
    uint64_t told = 0;
    join(&thread, header, PEAK_ALONE);
    peak_begin_own(&thread.share, header, &told);
    for (int i = 0; i < EVENTS; i++) {
        int64_t size = 1 + rand() % 1000;
        if (rand() % steps_between == 0) {
            free_inherited(&thread, header, size * 20);
            highest += size * 20;
        } else {
            size = rand() % 20 < 11 ? size : live < size ? -live : -size;
            size += size == 0;
            change(&thread, header, size);
            live += size;
        }
        assert_true(live <= highest || (header->peak_epoch & 1) != 0);
        highest = live > highest ? live : highest;
        own_highest = live > own_highest ? live : own_highest;
        assert_int_equal(live > (int64_t)told ? live : (int64_t)told, own_highest);
        if (rand() % told_each == 0) {
            peak_flush(&thread.share, header);
            assert_int_equal(header->maximum_bytes, highest);
            assert_int_equal(told, own_highest);
        }
    }
    peak_end_own();
    peak_leave(&thread.share, header);
    assert_int_equal(header->maximum_bytes, highest);
    change(&thread, header, 2 * highest); /* is nobody's any more */
    assert_int_equal(told, own_highest);
    free(header);
}

static void a_light_child_is_exact(void **state) {
    (void)state;
    srand(5);
    own_and_inherited(3, 1);
    own_and_inherited(50, 3);
    own_and_inherited(1000, 1 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_is_exact),
        cmocka_unit_test(alone_below_the_maximum),
        cmocka_unit_test(a_light_child_is_exact),
        cmocka_unit_test(a_quiet_first_thread_counts),
        cmocka_unit_test(an_event_under_way_is_told_soon),
        cmocka_unit_test(seen_late_it_is_within_the_bound),
        cmocka_unit_test(what_quiet_threads_hold_is_told),
        cmocka_unit_test(the_bound_outlives_its_threads),
        cmocka_unit_test(an_ended_first_thread_is_left_alone),
        cmocka_unit_test(shared_it_is_within_the_bound),
        cmocka_unit_test(threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
