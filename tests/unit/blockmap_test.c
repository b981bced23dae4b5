/* SPDX-License-Identifier: MIT */
/* blockmap_test.c: analyze/replay/pairing: what was put in is found until it is taken; the room.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/pairing.h"

#include <stdlib.h>

enum { KEYS = 1500000 };

static uint64_t key_of(uint64_t number) {
    return (uint64_t)MEMTRACE_THREAD_OTHERS << PAIRING_NUMBER_BITS | (number + 1);
}

static void put(struct blockmap *map, uint64_t number, uint64_t size) {
    const struct pairing_block block = {.size = size};
    blockmap_put(map, key_of(number), &block);
}

/* 0: it is not there. */
static uint64_t take(struct blockmap *map, uint64_t number) {
    struct pairing_block block = {0};
    return blockmap_take(map, key_of(number), &block) ? block.size : 0;
}

/* While it grows it never has room for twice of what is in it, but for the smallest tables. */
static void room_follows_blocks(void **state) {
    struct blockmap map = {0};
    uint64_t room = 0;
    (void)state;
    for (uint64_t number = 0; number < KEYS; number++) {
        put(&map, number, number + 1);
        if (number % 20000 == 19999 && number > BLOCKMAP_PARTS * UINT64_C(3100)) {
            room = 0;
            for (size_t i = 0; i < BLOCKMAP_PARTS; i++) {
                room += map.parts[i].capacity;
            }
            assert_in_range(room, map.count, map.count * 2);
        }
    }
    assert_true(room != 0);
    assert_int_equal(map.count, KEYS);
    for (uint64_t number = 0; number < KEYS; number++) {
        assert_int_equal(take(&map, number), number + 1);
    }
    assert_int_equal(map.count, 0);
    blockmap_free(&map);
}

struct seen {
    const uint64_t *size;
    uint64_t count;
};

static int see(void *context, const struct blockmap_item *item) {
    struct seen *seen = context;
    assert_int_equal(item->block.size, seen->size[item->key - key_of(0)]);
    seen->count++;
    return seen->count == 1000 ? 7 : 0;
}

/* Against a plain array: put in, replaced and taken at random, in tables that are mostly full. */
static void random_keys(void **state) {
    enum { NUMBERS = 3000, STEPS = 2000000 };
    uint64_t *size = calloc(NUMBERS, sizeof *size);
    struct blockmap map = {0};
    struct seen seen = {.size = size};
    uint64_t count = 0;
    (void)state;
    srand(11);
    for (int i = 0; i < STEPS; i++) {
        uint64_t number = (uint64_t)rand() % NUMBERS;
        if (rand() % 8 != 0) {
            count += size[number] == 0;
            size[number] = (uint64_t)rand() + 1;
            put(&map, number, size[number]);
        } else {
            assert_int_equal(take(&map, number), size[number]);
            count -= size[number] != 0;
            size[number] = 0;
        }
        assert_int_equal(map.count, count);
    }
    assert_int_equal(blockmap_each(&map, see, &seen), 7); /* stops where it is told */
    while (map.count > 500) {
        take(&map, (uint64_t)rand() % NUMBERS);
    }
    seen.count = 0;
    assert_int_equal(blockmap_each(&map, see, &seen), 0);
    assert_int_equal(seen.count, map.count);
    blockmap_free(&map);
    free(size);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(room_follows_blocks),
                                       cmocka_unit_test(random_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
