/* SPDX-License-Identifier: MIT */
/* sort_test.c: analyze/base/sort.c: as qsort() sorts, equal keys in their order; it can be stopped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/base/sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 200000 };

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 11;
}

static int compare(const void *left, const void *right) {
    const struct sort_key *a = left;
    const struct sort_key *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return (a->place > b->place) - (a->place < b->place);
}

static void fill(struct sort_key *keys, uint64_t mask) {
    uint64_t state = mask;
    for (size_t i = 0; i < KEYS; i++) {
        keys[i] = (struct sort_key){next_random(&state) & mask, i};
    }
}

static void as_the_library_sorts(void **state) {
    static struct sort_key keys[KEYS];
    static struct sort_key wanted[KEYS];
    const uint64_t masks[] = {0, 1, 0x7ff, 0x800, 0xffffffff, UINT64_MAX, UINT64_C(1) << 40};
    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        fill(keys, masks[i]);
        keys[KEYS / 2].key = masks[i] == UINT64_MAX ? UINT64_MAX : keys[KEYS / 2].key;
        memcpy(wanted, keys, sizeof wanted);
        qsort(wanted, KEYS, sizeof *wanted, compare);
        assert_int_equal(sort_keys(keys, KEYS, NULL), SORT_DONE);
        assert_memory_equal(keys, wanted, sizeof wanted);
    }
    assert_int_equal(sort_keys(NULL, 0, NULL), SORT_DONE);
}

static void it_can_be_stopped(void **state) {
    static struct sort_key keys[KEYS];
    const atomic_bool cancel = true;
    (void)state;
    fill(keys, UINT64_MAX);
    assert_int_equal(sort_keys(keys, KEYS, &cancel), SORT_CANCELLED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_library_sorts),
                                       cmocka_unit_test(it_can_be_stopped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
