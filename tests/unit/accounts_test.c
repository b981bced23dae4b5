/* SPDX-License-Identifier: MIT */
/* accounts_test.c: analyze/replay/accounts: sums and the peak against plain counting; estimates
 * from samples are unbiased and as far off as their standard errors say. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/accounts.h"
#include "analyze/window/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXTS = 20, BLOCKS = 64, MAPPING = 18, POOL = 19 };

/* Accounts, their slices so far, and the model that they make. */
struct subject {
    struct accounts accounts;
    struct model *model;
    struct sums sums;
};

/* Contexts 1 .. 17 are heap, then a mapping and a pool. */
static struct subject *start(void) {
    struct subject *subject = calloc(1, sizeof *subject);
    struct model *model = job_array(1, sizeof *model);
    model->node_count = CONTEXTS;
    model->nodes = job_array(CONTEXTS, sizeof *model->nodes);
    for (uint64_t id = 1; id < CONTEXTS; id++) {
        model->nodes[id].frame = 0x10000 + id;
    }
    model->nodes[MAPPING].frame = MEMTRACE_FRAME_MAPPING;
    model->nodes[POOL].frame = MEMTRACE_FRAME_POOL + 2;
    subject->model = model;
    accounts_start(&subject->accounts, model->nodes, CONTEXTS);
    sums_start(&subject->sums, model);
    return subject;
}

static void cut(struct subject *subject) {
    struct slice slice;
    accounts_cut(&subject->accounts, &slice);
    sums_add(&subject->sums, &slice);
    slice_free(&slice);
}

static void finish(struct subject *subject) {
    cut(subject);
    sums_finish(&subject->sums);
}

static void end(struct subject *subject) {
    accounts_end(&subject->accounts);
    sums_end(&subject->sums);
    model_free(subject->model);
    free(subject);
}

/* What plain counting says. */
struct truth {
    uint64_t live[CONTEXTS];
    uint64_t at_peak[CONTEXTS];
    uint64_t allocations[CONTEXTS];
    uint64_t frees[CONTEXTS];
    uint64_t heap;
    uint64_t maximum;
    bool has_left;
};

static void truth_changes(struct truth *truth, const struct pairing_block *block, bool begins) {
    bool is_heap = block->context != POOL;
    truth->live[block->context] += begins ? block->size : -block->size;
    truth->allocations[block->context] += begins;
    truth->frees[block->context] += !begins;
    truth->heap += is_heap ? (begins ? block->size : -block->size) : 0;
    truth->has_left =
        truth->heap <= truth->maximum && (truth->has_left || truth->heap < truth->maximum);
    if (!truth->has_left) { /* what other classes hold may still change at the maximum */
        truth->maximum = truth->heap;
        memcpy(truth->at_peak, truth->live, sizeof truth->at_peak);
    }
}

static void check(const struct subject *subject, const struct truth *truth) {
    const struct model *model = subject->model;
    uint64_t peak = 0;
    assert_int_equal(model->header.live_bytes, truth->heap);
    assert_int_equal(model->header.maximum_bytes, truth->maximum);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        assert_int_equal(context->live_bytes, truth->live[context->id]);
        assert_int_equal(context->allocations, truth->allocations[context->id]);
        assert_int_equal(context->frees, truth->frees[context->id]);
        assert_int_equal(context->peak_bytes, truth->at_peak[context->id]);
        peak += context->class == MODEL_HEAP ? context->peak_bytes : 0;
    }
    assert_int_equal(peak, truth->maximum);
}

static void against_plain_counting(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 200; seed++) {
        struct subject *subject = start();
        struct accounts *accounts = &subject->accounts;
        struct pairing_block blocks[BLOCKS] = {{0}};
        struct truth truth = {0};
        srand(seed);
        for (int i = 0; i < 2000; i++) {
            struct pairing_block *block = &blocks[rand() % BLOCKS];
            if (rand() % 100 < (int)(seed % 5)) {
                cut(subject);
            }
            const struct pairing_end freed = {.thread = 1, .tick = (uint32_t)i};
            if (block->context != 0) {
                accounts_free(accounts, block, 1, &freed, false);
                truth_changes(&truth, block, false);
                block->context = 0;
            } else {
                uint32_t context = 1 + (uint32_t)rand() % (CONTEXTS - 1);
                *block = (struct pairing_block){.size = (uint64_t)(rand() % 5) * 16,
                                                .context = context != MAPPING ? context : 1};
                truth_changes(&truth, block, true);
                accounts_alloc(accounts, block, 1, false);
            }
        }
        finish(subject);
        check(subject, &truth);
        end(subject);
    }
}

static void threads_and_lifetimes(void **state) {
    struct subject *subject = start();
    struct accounts *accounts = &subject->accounts;
    const struct pairing_block block = {.size = 100, .context = 3, .tick = 10};
    const struct pairing_end own = {.thread = 1, .tick = 10};
    const struct pairing_end other = {.thread = 2, .tick = 13};
    const struct model *model = subject->model;
    (void)state;
    for (int i = 0; i < 3; i++) {
        accounts_alloc(accounts, &block, 1, i == 2);
    }
    accounts_free(accounts, &block, 1, &own, true);
    accounts_free(accounts, &block, 1, &other, false);
    finish(subject);
    assert_int_equal(sums_thread(&subject->sums, 1).alloc_units, 2); /* one was inherited */
    assert_int_equal(sums_thread(&subject->sums, 1).free_bytes, 100);
    assert_int_equal(sums_thread(&subject->sums, 2).foreign_bytes, 100);
    assert_int_equal(model->foreign_count, 1);
    assert_int_equal(model->foreign[0].owner, 1);
    assert_int_equal(model->foreign[0].blocks, 1);
    assert_int_equal(model->contexts[0].temporary, 1);
    assert_int_equal(model->contexts[0].allocations, 3);
    assert_int_equal(model->lifetimes[model->contexts[0].lifetimes + 0], 1);
    assert_int_equal(model->lifetimes[model->contexts[0].lifetimes + 1], 1); /* 3 ticks: below 4 */
    end(subject);
}

static void mappings_and_culled(void **state) {
    struct subject *subject = start();
    struct accounts *accounts = &subject->accounts;
    const struct model *model = subject->model;
    (void)state;
    assert_int_equal(accounts_class(accounts, MAPPING), MODEL_MAPPING);
    accounts_map(accounts, MAPPING, 8192);
    accounts_unmap(accounts, MAPPING, 4096, false);
    accounts_culled(accounts,
                    &(struct memtrace_culled){.context = 2, .thread = 1, .count = 7, .bytes = 70});
    finish(subject);
    assert_int_equal(model->context_count, 2);
    assert_int_equal(model->contexts[0].total_bytes, 70);
    assert_int_equal(model->contexts[0].frees, 7);
    assert_int_equal(model->contexts[0].live_bytes, 0);
    assert_int_equal(model->contexts[1].live_bytes, 4096);
    assert_int_equal(model->contexts[1].live_blocks, 1);
    assert_int_equal(model->header.live_bytes, 0);
    end(subject);
}

/* A fixed list of allocations, sampled by bytes a thousand times: the estimates' mean is the truth,
 * their spread is what they say of themselves. */
static void samples(void **state) {
    enum { SEEDS = 1000, ALLOCATIONS = 2000, DISTANCE = 4096 };
    static const uint64_t sizes[] = {16, 100, 1000, 5000, 40000};
    double truth = 0;
    double sum = 0;
    double squares = 0;
    double count = 0;
    double variance = 0;
    (void)state;
    for (int i = 0; i < ALLOCATIONS; i++) {
        truth += (double)sizes[i % 5];
    }
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct subject *subject = start();
        struct accounts *accounts = &subject->accounts;
        const struct model *model = subject->model;
        double error;
        srand(seed + 1);
        for (int i = 0; i < ALLOCATIONS; i++) {
            uint64_t size = sizes[i % 5];
            double chance = 1 - exp(-(double)size / DISTANCE);
            if ((double)rand() / RAND_MAX < chance) {
                const struct pairing_block block = {
                    .size = size, .weight = (uint64_t)llround((double)size / chance), .context = 1};
                accounts_alloc(accounts, &block, 1, false);
            }
        }
        finish(subject);
        assert_true(accounts->is_sampled);
        error = (double)model->contexts[0].total_bytes - truth;
        sum += error;
        squares += error * error;
        count += (double)model->contexts[0].allocations;
        variance += model->recording.errors.total_bytes * model->recording.errors.total_bytes;
        assert_true(model->contexts[0].total_error_bytes == model->recording.errors.total_bytes);
        end(subject);
    }
    assert_true(fabs(sum / SEEDS) < 4 * sqrt(variance / SEEDS / SEEDS)); /* of the mean of 1000 */
    assert_true(squares / variance > 0.8 && squares / variance < 1.25);
    assert_true(fabs(count / SEEDS - ALLOCATIONS) < 0.05 * ALLOCATIONS);
}

/* A sampled block stands for weight / size allocations, to the nearest unit: a sum of many is not
 * always too low or too high. */
static void units(void **state) {
    static const struct {
        uint64_t size, weight, units;
    } cases[] = {
        {100, 0, ACCOUNTS_ONE},
        {100, 100, ACCOUNTS_ONE},
        {0, 100, ACCOUNTS_ONE},
        {2, 3, ACCOUNTS_ONE * 3 / 2},
        {1, 1000, ACCOUNTS_ONE * 1000},
        {3, 4, 87381},  /* and a third */
        {3, 5, 109227}, /* 109226 and two thirds */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct pairing_block block = {.size = cases[i].size, .weight = cases[i].weight};
        assert_int_equal(accounts_sampled_units(block), cases[i].units);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_plain_counting),
        cmocka_unit_test(threads_and_lifetimes),
        cmocka_unit_test(mappings_and_culled),
        cmocka_unit_test(units),
        cmocka_unit_test(samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
