/* SPDX-License-Identifier: MIT */
/* slice_test.c: analyze/replay/slice: what is put in comes out; two slices joined are what one
 * slice of the same events is; damaged ones are read up to the damage. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/accounts.h"
#include "analyze/window/index.h"
#include "analyze/window/sums.h"

#include <stdlib.h>

enum { CONTEXTS = 50, BLOCKS = 40, THREADS = 5, EVENTS = 600, MANY = 20 };

static struct model_node nodes[CONTEXTS];

static struct accounts *start(void) {
    struct accounts *accounts = calloc(1, sizeof *accounts);
    for (uint64_t id = 1; id < CONTEXTS; id++) {
        nodes[id].frame = 0x10000 + id;
    }
    nodes[CONTEXTS - 1].frame = MEMTRACE_FRAME_POOL;
    accounts_start(accounts, nodes, CONTEXTS);
    return accounts;
}

/* What the heap holds, and the variance of that estimate where it held most. */
struct estimate {
    int64_t live, highest;
    double variance, at_highest;
};

/* A sampled block of size s that stands for w bytes has the variance w (w - s). */
static void change(struct estimate *estimate, const struct pairing_block *block, int sign) {
    double weight = (double)block->weight;
    if (block->context == CONTEXTS - 1) {
        return; /* a pool */
    }
    estimate->live += sign * (int64_t)(block->weight != 0 ? block->weight : block->size);
    estimate->variance += block->weight != 0 ? sign * weight * (weight - (double)block->size) : 0;
    if (estimate->live > estimate->highest) {
        estimate->highest = estimate->live;
        estimate->at_highest = estimate->variance;
    }
}

/* The same random events in each; the second one is cut in between. */
struct twins {
    struct accounts *one;
    struct accounts *two;
    struct slice joined;
    bool has_joined;
    struct model model;
    struct sums sums; /* of the same slices */
    struct estimate estimate;
};

static void start_twins(struct twins *twins) {
    *twins = (struct twins){.one = start(), .two = start()};
    twins->model = (struct model){.nodes = nodes, .node_count = CONTEXTS};
    sums_start(&twins->sums, &twins->model);
}

static void end_twins(struct twins *twins) {
    sums_end(&twins->sums);
    slice_free(&twins->joined);
    accounts_end(twins->one);
    accounts_end(twins->two);
    free(twins->one);
    free(twins->two);
}

static void cut(struct twins *twins) {
    struct slice slice;
    accounts_cut(twins->two, &slice);
    sums_add(&twins->sums, &slice);
    if (twins->has_joined) {
        slice_join(&twins->joined, &slice);
    } else {
        twins->joined = slice;
    }
    twins->has_joined = true;
}

static void random_events(struct twins *twins, int cuts) {
    struct pairing_block blocks[BLOCKS] = {{0}};
    for (int i = 0; i < EVENTS; i++) {
        struct pairing_block *block = &blocks[rand() % BLOCKS];
        uint32_t thread = 1 + (uint32_t)rand() % THREADS;
        const struct pairing_end freed = {.thread = thread, .tick = (uint32_t)i};
        bool is_temporary = rand() % 2;
        if (cuts != 0 && rand() % (EVENTS / cuts) == 0) {
            cut(twins);
        }
        if (block->context != 0) {
            change(&twins->estimate, block, -1);
            accounts_free(twins->one, block, 1, &freed, is_temporary);
            accounts_free(twins->two, block, 1, &freed, is_temporary);
            block->context = 0;
        } else {
            *block = (struct pairing_block){.size = (uint64_t)(rand() % 5) * 16,
                                            .context = 1 + (uint32_t)rand() % (CONTEXTS - 1)};
            block->weight = block->size * (unsigned)(rand() % 3);
            change(&twins->estimate, block, 1);
            twins->one->now_ns = twins->two->now_ns = (uint64_t)i + 1;
            accounts_alloc(twins->one, block, thread, false);
            accounts_alloc(twins->two, block, thread, false);
        }
    }
    cut(twins);
}

static void check_equal(const struct slice *left, const struct slice *right) {
    assert_int_equal(left->change, right->change);
    assert_int_equal(left->highest, right->highest);
    assert_int_equal(left->maximum_ns, right->maximum_ns);
    assert_int_equal(left->at_maximum, right->at_maximum);
    assert_int_equal(left->contexts, right->contexts);
    assert_int_equal(left->threads, right->threads);
    assert_true(left->variance.live == right->variance.live);
    assert_true(left->variance.maximum == right->variance.maximum);
    assert_int_equal(left->size, right->size);
    assert_memory_equal(left->bytes, right->bytes, left->size);
}

static void joined(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 300; seed++) {
        struct twins twins;
        struct slice slice;
        start_twins(&twins);
        srand(seed);
        random_events(&twins, (int)(seed % 30));
        accounts_cut(twins.one, &slice);
        check_equal(&slice, &twins.joined);
        assert_int_equal(slice.highest, twins.estimate.highest);
        assert_true(slice.variance.maximum == twins.estimate.at_highest);
        assert_true(twins.sums.all.variance.maximum == twins.estimate.at_highest);
        slice_free(&slice);
        end_twins(&twins);
    }
}

static void parts_of_allocations(void **state) {
    struct slice slice = {0};
    struct slice_writer writer = {.slice = &slice};
    struct slice_reader reader;
    struct slice_context in = {.alloc_bytes = 1000,
                               .alloc_units = ACCOUNTS_ONE + 5,
                               .free_bytes = 10,
                               .free_units = 3,
                               .temporary = 2,
                               .peak = (uint64_t)-20,
                               .total_variance = 0.5,
                               .live_variance = -0.25,
                               .lifetimes = {[3] = 3, [15] = 1}};
    struct slice_context out;
    (void)state;
    /* The first ones are read where there are many bytes still, the last ones where there are few.
     */
    for (uint32_t id = 7; id < 7 + MANY; id++) {
        in.id = id;
        slice_put_context(&writer, &in);
    }
    slice_finish(&writer);
    slice_read(&reader, &slice);
    for (uint32_t id = 7; id < 7 + MANY; id++) {
        in.id = id;
        assert_true(slice_next_context(&reader, &out));
        assert_memory_equal(&in, &out, sizeof in);
    }
    assert_false(slice_next_context(&reader, &out));
    assert_false(reader.failed);
    slice_free(&slice);
}

/* Any byte may be another, any number of them missing: no read outside, and an end. */
static void damaged(void **state) {
    struct twins twins;
    struct slice slice;
    (void)state;
    start_twins(&twins);
    srand(1);
    random_events(&twins, 0);
    accounts_cut(twins.one, &slice);
    for (size_t i = 0; i < slice.size; i++) {
        struct slice cut_off = slice;
        struct slice_reader reader;
        struct slice_context context;
        struct slice_thread thread;
        struct slice_foreign foreign;
        unsigned char kept = slice.bytes[i];
        cut_off.size = i + (i % 2) * (slice.size - i);
        slice.bytes[i] ^= (unsigned char)(1 + i % 255);
        slice_read(&reader, &cut_off);
        while (slice_next_context(&reader, &context)) {
        }
        while (slice_next_thread(&reader, &thread)) {
            for (uint64_t k = 0; k < thread.foreign; k++) {
                slice_next_foreign(&reader, &foreign);
            }
        }
        assert_true(cut_off.size == slice.size || reader.failed);
        slice.bytes[i] = kept;
    }
    slice_free(&slice);
    end_twins(&twins);
}

/* One that was read from a file and has no bytes, whatever it says that is in them. */
static void empty(void **state) {
    struct slice slice = {0};
    struct slice_reader reader;
    struct slice_context context;
    (void)state;
    slice_read(&reader, &slice);
    assert_false(slice_next_context(&reader, &context));
    assert_false(reader.failed);
    slice.contexts = 1;
    slice_read(&reader, &slice);
    slice_next_context(&reader, &context);
    assert_true(reader.failed);
}

/* An eighth of a block's 800 events is taken to come in each eighth of its time. */
static void a_long_block_is_cut(void **state) {
    const uint64_t eighth_ns = UINT64_C(5) << MEMTRACE_TICK_SHIFT;
    struct recording_entry entry = {
        .block = {.kind = MEMTRACE_BLOCK_EVENTS, .items = 800, .last_ns = 8 * eighth_ns}};
    const struct recording recording = {.blocks = &entry, .block_count = 1};
    const struct recording *items[] = {&recording};
    const struct timeorder_parts parts = {items, 1};
    size_t count;
    uint64_t *edges = index_edges(parts, 0, 100, 1000, &count);
    (void)state;
    assert_int_equal(count, 7);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(edges[i], (i + 1) * eighth_ns);
    }
    edges = index_edges(parts, 2 * eighth_ns, 200, 1000, &count); /* two eighths a slice */
    assert_int_equal(count, 2);
    assert_int_equal(edges[0], 4 * eighth_ns);
    assert_int_equal(edges[1], 6 * eighth_ns);
    entry.block.first_ns = 9 * eighth_ns; /* damaged: all of it is there */
    edges = index_edges(parts, 0, 100, 1000, &count);
    assert_int_equal(count, 1);
    assert_int_equal(edges[0], 9 * eighth_ns);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined), cmocka_unit_test(parts_of_allocations), cmocka_unit_test(damaged),
        cmocka_unit_test(empty),  cmocka_unit_test(a_long_block_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
