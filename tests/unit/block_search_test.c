/* SPDX-License-Identifier: MIT */
/* Tests of runtime/heap/block_search.c: blocks in blocks, at random, compared with a look at all of
 * them. */
#include "runtime/heap/block_search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 3000, DEEPEST = 6, TICK = 1000 };

static struct shadow_heap heap;
static struct heap_block all[BLOCKS];
static size_t count;
static struct written_pages touched;

static void insert(uintptr_t start, uint64_t size) {
    struct heap_block block = {
        .start = start, .size = size, .context = 1, .thread = 1, .birth_tick = TICK / 2};
    if (count < BLOCKS && heap_insert(&heap, &block) == 0) {
        all[count++] = block;
    }
}

/* Large blocks, with such in them, and small ones between; no two begin in one KiB. */
static void fill(uintptr_t start, uintptr_t end, int depth) {
    uintptr_t at = start + 1024 + 8 * (uintptr_t)(random() % 100);
    while (at + 4096 < end) {
        uint64_t size = 1024 + (uint64_t)(random() % (long)((end - at) / 2 + 1));
        size = at + size < end ? size : end - at;
        if (size < FINE_SIZE_LIMIT) {
            return;
        }
        insert(at, size);
        if (depth < DEEPEST && size > 8192 && random() % 2 == 0) {
            fill(at, at + size, depth + 1);
        } else {
            insert(at + 512, 8 + (uint64_t)(random() % 400));
        }
        at += (size + 7) / 8 * 8 + 2048 + 8 * (uintptr_t)(random() % 1000);
    }
}

static int by_start(const void *left, const void *right) {
    const struct heap_block *a = left;
    const struct heap_block *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

static int make(void **state) {
    static const uintptr_t places[] = {UINT64_C(0x10000), UINT64_C(0x555555550000),
                                       UINT64_C(0x555556000000), UINT64_C(0x7f1234560000)};
    (void)state;
    srandom(17);
    count = 0;
    if (heap_init(&heap, MEMTRACE_POOL_SHIFT) != 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        fill(places[i], places[i] + (3 << 20) * (i + 1), 0);
    }
    qsort(all, count, sizeof *all, by_start);
    return count > 500 ? 0 : -1;
}

/* The innermost large block, and how many there are. */
static int look(uintptr_t address, uintptr_t limit, const struct heap_block **innermost) {
    int depth = 0;
    for (size_t i = 0; i < count; i++) {
        if (all[i].size >= FINE_SIZE_LIMIT && all[i].start < limit &&
            address - all[i].start < all[i].size) {
            *innermost = &all[i];
            depth++;
        }
    }
    return depth;
}

static void check(struct block_search *it, uintptr_t address, uintptr_t limit) {
    const struct heap_block *expected = NULL;
    int depth = look(address, limit, &expected);
    assert_int_equal(block_search_find(it, address, limit), depth);
    if (depth != 0) {
        assert_int_equal(it->block[depth - 1].start, expected->start);
        assert_int_equal(it->block[depth - 1].size, expected->size);
        assert_int_equal(it->block[depth - 1].birth_tick, TICK / 2);
    }
}

static void finds_what_contains(void **state) {
    static struct block_search it, others; /* large */
    (void)state;
    block_search_begin(&it, &heap, TICK);
    block_search_begin(&others, &heap, TICK);
    for (size_t i = 0; i < count; i++) {
        check(&others, all[i].start, all[i].start); /* without itself */
        check(&it, all[i].start, all[i].start + 1);
        if (i + 1 < count && all[i + 1].start > all[i].start + 3000) {
            check(&it, all[i].start + 2999, all[i].start + 3000);
        }
    }
}

struct seen {
    size_t count;
};

static void see(void *argument, const struct heap_block *block) {
    struct seen *seen = argument;
    assert_true(seen->count < count);
    assert_int_equal(block->start, all[seen->count].start);
    assert_int_equal(block->size, all[seen->count].size);
    assert_int_equal(block->birth_tick, TICK / 2);
    seen->count++;
}

static void visits_by_address(void **state) {
    struct seen seen = {0};
    (void)state;
    memset(&touched, 0, sizeof touched);
    block_search_visit(&heap, TICK, &touched, see, &seen);
    assert_int_equal(seen.count, count);
}

static void of_nothing(void **state) {
    const struct shadow_heap none = {.granule_shift = MEMTRACE_POOL_SHIFT};
    static struct block_search it;
    struct seen seen = {0};
    (void)state;
    block_search_begin(&it, &none, TICK);
    assert_int_equal(block_search_find(&it, 0x1234000, 0x1234001), 0);
    memset(&touched, 0, sizeof touched);
    block_search_visit(&none, TICK, &touched, see, &seen);
    assert_int_equal(seen.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_contains),
        cmocka_unit_test(visits_by_address),
        cmocka_unit_test(of_nothing),
    };
    return cmocka_run_group_tests(tests, make, NULL);
}
