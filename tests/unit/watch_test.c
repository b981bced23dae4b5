/* SPDX-License-Identifier: MIT */
/* Tests of runtime/heap/watch.c: random programs of watches, allocations and frees, against a list
 * of all that was ever allocated. */
#include "runtime/heap/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREAD = 5, ANOTHER = 6, PLACES = 2000, EVENTS = 30000, BASE = 0x10000000 };

/* What happened, as a list that only grows. */
struct event {
    uint64_t size;
    uint32_t context;
    int alive;
};

static struct shadow_heap heap;
static struct watches watches;
static struct event events[EVENTS];
static size_t event_count;
static size_t event_at[PLACES]; /* the event whose block is there, + 1; 0: none */

/* A watch as the list sees it. */
struct seen {
    uint32_t number;
    size_t start;
    struct watch_limits limits;
};
static struct seen seen[WATCH_DEPTH];
static size_t depth;

static uintptr_t address_of(size_t place) {
    return (uintptr_t)BASE + place * 2048;
}

static int open_heap(void **state) {
    (void)state;
    return heap_init(&heap, MEMTRACE_FINE_SHIFT);
}

static void release(size_t place) {
    struct heap_block block;
    if (event_at[place] != 0) {
        assert_int_equal(heap_remove(&heap, address_of(place), 0, &block), 1);
        events[event_at[place] - 1].alive = 0;
        event_at[place] = 0;
    }
}

static void allocate(size_t place) {
    struct heap_block block = {.size = (uint64_t)(rand() % 2000),
                               .context = 1 + (uint32_t)(rand() % 50),
                               .thread = THREAD,
                               .start = address_of(place)};
    release(place);
    if (rand() % 8 == 0) { /* another thread has it: not ours */
        block.thread = ANOTHER;
        assert_int_equal(heap_insert(&heap, &block), 0);
        assert_int_equal(heap_remove(&heap, block.start, 0, &block), 1);
        return;
    }
    assert_int_equal(heap_insert(&heap, &block), 0);
    watch_alloc(&watches, &heap, &block);
    events[event_count] = (struct event){block.size, block.context, 1};
    event_at[place] = ++event_count;
}

static void begin(void) {
    struct seen *one = &seen[depth];
    *one =
        (struct seen){.start = event_count,
                      .limits = {(uint64_t)(rand() % 20), (uint64_t)(rand() % 9000), rand() % 2}};
    one->number = watch_begin(&watches, &one->limits);
    assert_int_not_equal(one->number, 0);
    depth++;
}

/* Ends the watch at `level`, those inside it without a word. */
static void end(size_t level) {
    const struct seen *one = &seen[level];
    struct watch_result expected = {0};
    struct watch_result got;
    for (size_t i = one->start; i < event_count; i++) {
        const struct event *event = &events[i];
        expected.allocations++;
        expected.bytes += event->size;
        if (expected.over_context == 0 && (expected.allocations > one->limits.most_allocations ||
                                           expected.bytes > one->limits.most_bytes)) {
            expected.over_context = event->context;
        }
        if (one->limits.leaks && event->alive) {
            expected.leaked_context =
                expected.leaked_blocks == 0 ? event->context : expected.leaked_context;
            expected.leaked_blocks++;
            expected.leaked_bytes += event->size;
        }
    }
    assert_int_equal(watch_end(&watches, &heap, one->number, &got), 0);
    assert_memory_equal(&got, &expected, sizeof got);
    assert_int_equal(watch_end(&watches, &heap, one->number, &got), -1);
    depth = level;
}

static void random_programs(void **state) {
    (void)state;
    srand(11);
    watches.thread = THREAD;
    while (event_count < EVENTS) {
        int what = rand() % 1000;
        size_t place = (size_t)(rand() % PLACES);
        if (what < 4 && depth < WATCH_DEPTH) {
            begin();
        } else if (what < 8 && depth > 0) {
            end(rand() % 4 != 0 ? depth - 1 : (size_t)rand() % depth);
        } else if (what < 400) {
            release(place);
        } else {
            allocate(place);
        }
    }
    while (depth > 0) {
        end(depth - 1);
    }
    assert_null(watches.entries);
}

static void too_deep(void **state) {
    const struct watch_limits limits = {1, 1, 1};
    struct watches deep = {.thread = THREAD};
    struct watch_result result;
    uint32_t first = 0;
    (void)state;
    for (size_t i = 0; i < WATCH_DEPTH; i++) {
        uint32_t number = watch_begin(&deep, &limits);
        assert_int_not_equal(number, 0);
        first = i == 0 ? number : first;
    }
    assert_int_equal(watch_begin(&deep, &limits), 0);
    assert_int_equal(watch_end(&deep, &heap, 0, &result), -1);
    assert_int_equal(watch_end(&deep, &heap, first, &result), 0);
    assert_int_equal(deep.depth, 0);
    watch_reset(&deep);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),
        cmocka_unit_test(too_deep),
    };
    return cmocka_run_group_tests(tests, open_heap, NULL);
}
