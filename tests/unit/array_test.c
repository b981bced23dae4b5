/* SPDX-License-Identifier: MIT */
/* array_test.c: analyze/base: arrays, hash maps and arenas keep what they were given as they grow.
 */
#include "analyze/base/arena.h"
#include "analyze/base/array.h"
#include "analyze/base/numbermap.h"

// clang-format off
#include <setjmp.h>
#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

static void keeps_all(void **state) {
    uint32_t *items = NULL;
    size_t room = 0;
    (void)state;
    for (uint32_t i = 0; i < 10000; i++) {
        assert_int_equal(array_grow(&items, &room, i, sizeof *items), 0);
        assert_true(room > i);
        items[i] = i * 7;
    }
    for (uint32_t i = 0; i < 10000; i++) {
        assert_int_equal(items[i], i * 7);
    }
    assert_int_equal(array_reserve(&items, &room, 100000, sizeof *items), 0);
    assert_true(room >= 100000);
    assert_int_equal(items[9999], 9999 * 7);
    free(items);
}

static void refuses_too_many(void **state) {
    uint64_t *items = NULL;
    size_t room = 0;
    (void)state;
    assert_int_equal(array_reserve(&items, &room, SIZE_MAX / 4, sizeof *items), -1);
    assert_int_equal(array_reserve(&items, &room, SIZE_MAX, 1), -1);
    assert_null(items);
    assert_int_equal(room, 0);
}

static void keeps_all_by_count(void **state) {
    (void)state;
    uint64_t *items = NULL;
    size_t count = 0;
    while (count < 5000) {
        assert_int_equal(array_grow_by_count(&items, count, sizeof *items), 0);
        if ((count & (count - 1)) == 0) /* it has just grown: there is room up to the next power */
            assert_true(malloc_usable_size(items) >= (count != 0 ? 2 * count : 1) * sizeof *items);
        items[count] = count;
        count++;
    }
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(items[i], i);
    free(items);
}

static void numbermap_keeps_all(void **state) {
    (void)state;
    struct numbermap map = {0};
    static char places[5000];
    assert_null(numbermap_get(&map, 0));
    for (uint64_t i = 0; i < 5000; i++)
        assert_int_equal(numbermap_put(&map, i * 4096, &places[i]), 0);
    for (uint64_t i = 0; i < 5000; i++)
        assert_ptr_equal(numbermap_get(&map, i * 4096), &places[i]);
    assert_null(numbermap_get(&map, 5));
    assert_int_equal(numbermap_put(&map, 0, &places[9]), 0);
    assert_ptr_equal(numbermap_get(&map, 0), &places[9]);
    assert_int_equal(map.used, 5000);
    for (uint64_t i = 0; i < 5000; i += 2)
        assert_ptr_equal(numbermap_take(&map, i * 4096), &places[i != 0 ? i : 9]);
    for (uint64_t i = 0; i < 5000; i++)
        assert_ptr_equal(numbermap_get(&map, i * 4096), i % 2 != 0 ? &places[i] : NULL);
    assert_null(numbermap_take(&map, 0));
    assert_int_equal(map.used, 2500);
    numbermap_free(&map);
}

static void arenas_keep_what_they_gave(void **state) {
    (void)state;
    struct arena arena = {0};
    char *first = arena_string(&arena, "first");
    char *large = arena_alloc(&arena, 300000);
    memset(large, 1, 300000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal((uintptr_t)arena_string(&arena, "more") % 16, 0);
    assert_string_equal(first, "first");
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_all),
        cmocka_unit_test(refuses_too_many),
        cmocka_unit_test(keeps_all_by_count),
        cmocka_unit_test(numbermap_keeps_all),
        cmocka_unit_test(arenas_keep_what_they_gave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
