/* SPDX-License-Identifier: MIT */
/* chains_test.c: analyze/replay/lives: random chains grow and end, beside a plain array. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/lives.h"

#include <stdlib.h>

enum { CHAINS = 500, STEPS = 40000 };

/* By chain: its name at present, 0: none, and how many lives it has. */
static struct {
    uint64_t order;
    uint64_t count;
} kept[CHAINS];

static struct life life_of(size_t chain, uint64_t number) {
    return (struct life){.chain_order = kept[chain].order, .size = number};
}

static void keep(struct chains *chains, size_t chain) {
    struct life life = life_of(chain, ++kept[chain].count);
    chains_keep(chains, &life);
}

static void take(struct chains *chains, size_t chain) {
    struct life last = life_of(chain, 0);
    size_t count = 0;
    struct life *lives = chains_take(chains, &last, &count);
    assert_int_equal(count, kept[chain].count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(lives[i].chain_order, kept[chain].order);
        assert_int_equal(lives[i].size, i + 1);
    }
    job_release(lives);
    assert_null(chains_take(chains, &last, &count));
    kept[chain].order = kept[chain].count = 0;
}

static void at_random(void **state) {
    struct chains *chains = chains_new();
    uint64_t order = 0;
    (void)state;
    assert_non_null(chains);
    srand(1);
    for (int i = 0; i < STEPS; i++) {
        size_t chain = (size_t)rand() % CHAINS;
        order += 1 + (uint64_t)(rand() % 3);
        if (kept[chain].order != 0 && rand() % 8 == 0) {
            take(chains, chain);
            continue;
        }
        if (kept[chain].order == 0) {
            kept[chain].order = order;
        }
        keep(chains, chain);
    }
    for (size_t chain = 0; chain < CHAINS; chain++) {
        if (kept[chain].order != 0 && chain % 2 == 0) {
            take(chains, chain);
        }
    }
    chains_free(chains); /* with what is left */
    chains_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(at_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
