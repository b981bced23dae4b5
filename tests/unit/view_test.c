/* SPDX-License-Identifier: MIT */
/*
 * view_test.c: analyze/window/view: windows of random recordings (several threads, reallocations,
 * mappings, late and precise clocks, a shared thread id) against what all blocks' lives say one by
 * one; and the sums of many slices against those of one.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/lives.h"
#include "analyze/window/index.h"
#include "analyze/window/series.h"
#include "analyze/window/view.h"
#include "tests/unit/model_equal.h"
#include "tests/unit/recording_builder.h"
#include "tests/unit/recording_random.h"

enum { MOST_LIVES = 8000, WINDOWS = 12 };

static char path[] = "/tmp/memtrace-view-XXXXXX";

/* ---- What lives say ---- */

struct oracle {
    const struct model *whole;
    uint64_t from, to;
    struct life lives[MOST_LIVES];
    size_t count;
    struct expected {
        uint64_t allocations, total, frees, freed, temporary, live, blocks, peak, base;
        uint64_t lifetimes[MEMTRACE_LIFETIME_BUCKETS];
    } contexts[RANDOM_CONTEXTS + 1];
    uint64_t base, maximum;
};

struct change {
    uint64_t order;
    int64_t bytes;
    uint32_t context;
};

static int keep(void *context, const struct life *life) {
    struct oracle *oracle = context;
    assert_true(oracle->count < MOST_LIVES);
    oracle->lives[oracle->count++] = *life;
    return 0;
}

static bool is_inside(const struct oracle *oracle, uint64_t time_ns) {
    return oracle->from <= time_ns && time_ns < oracle->to;
}

static void expect_life(struct oracle *oracle, const struct life *life) {
    struct expected *context = &oracle->contexts[life->context];
    bool is_held = life->birth_ns < oracle->to && life->death_ns >= oracle->to;
    bool was_held = life->birth_ns < oracle->from && life->death_ns >= oracle->from;
    context->live += is_held ? life->size : 0;
    context->blocks += is_held;
    context->base += was_held ? life->size : 0;
    if (is_inside(oracle, life->birth_ns)) {
        context->allocations++;
        context->total += life->size;
    }
    if (life->death_ns != LIFE_ALIVE && is_inside(oracle, life->death_ns)) {
        uint64_t ticks =
            (life->death_ns >> MEMTRACE_TICK_SHIFT) - (life->birth_ns >> MEMTRACE_TICK_SHIFT);
        size_t bucket = 0;
        while (ticks >= (UINT64_C(1) << 2 * bucket) && bucket < MEMTRACE_LIFETIME_BUCKETS - 1) {
            bucket++;
        }
        context->frees++;
        context->freed += life->size;
        context->temporary += life->is_temporary;
        context->lifetimes[bucket]++;
    }
}

static int by_order(const void *left, const void *right) {
    const struct change *a = left;
    const struct change *b = right;
    if (a->order != b->order) {
        return a->order < b->order ? -1 : 1;
    }
    return (a->bytes > b->bytes) - (a->bytes < b->bytes); /* of a realloc, the free comes first */
}

static void expect_maximum(struct oracle *oracle) {
    struct change *changes = calloc(2 * MOST_LIVES, sizeof *changes);
    size_t count = 0;
    int64_t held = 0;
    int64_t highest = 0;
    size_t until = 0;
    assert_non_null(changes);
    for (size_t i = 0; i < oracle->count; i++) {
        const struct life *life = &oracle->lives[i];
        if (life->context == RANDOM_POOL) {
            continue;
        }
        if (is_inside(oracle, life->birth_ns)) {
            changes[count++] =
                (struct change){life->birth_order, (int64_t)life->size, life->context};
        }
        if (life->death_ns != LIFE_ALIVE && is_inside(oracle, life->death_ns)) {
            changes[count++] =
                (struct change){life->death_order, -(int64_t)life->size, life->context};
        }
    }
    qsort(changes, count, sizeof *changes, by_order);
    for (size_t i = 0; i < count; i++) {
        held += changes[i].bytes;
        if (held > highest) {
            highest = held;
            until = i + 1;
        }
    }
    for (size_t id = 0; id <= RANDOM_CONTEXTS; id++) {
        oracle->contexts[id].peak = oracle->contexts[id].base;
        oracle->base += id != RANDOM_POOL ? oracle->contexts[id].base : 0;
    }
    for (size_t i = 0; i < until; i++) {
        oracle->contexts[changes[i].context].peak += (uint64_t)changes[i].bytes;
    }
    oracle->maximum = oracle->base + (uint64_t)highest;
    free(changes);
}

static void check_context(const struct model *model, uint32_t id, const struct expected *expected) {
    static const struct model_context none;
    const struct model_context *found = model_find(model, id);
    const struct model_context *context = found != NULL ? found : &none;
    assert_int_equal(context->allocations, expected->allocations);
    assert_int_equal(context->total_bytes, expected->total);
    assert_int_equal(context->frees, expected->frees);
    assert_int_equal(context->freed_bytes, expected->freed);
    assert_int_equal(context->live_bytes, expected->live);
    assert_int_equal(context->live_blocks, expected->blocks);
    if (id != RANDOM_POOL) {
        assert_int_equal(context->temporary, expected->temporary);
        assert_int_equal(context->peak_bytes, expected->peak);
    }
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        uint64_t count = found != NULL && context->lifetimes != MODEL_NO_LIFETIMES
                             ? model->lifetimes[context->lifetimes + i]
                             : 0;
        assert_int_equal(count, expected->lifetimes[i]);
    }
}

static void check_view(struct oracle *oracle, const struct model *model, uint64_t from,
                       uint64_t to) {
    oracle->from = from;
    oracle->to = to;
    oracle->base = 0;
    memset(oracle->contexts, 0, sizeof oracle->contexts);
    for (size_t i = 0; i < oracle->count; i++) {
        expect_life(oracle, &oracle->lives[i]);
    }
    expect_maximum(oracle);
    assert_int_equal(model->totals.maximum_bytes, oracle->maximum);
    for (uint32_t id = 4; id <= RANDOM_CONTEXTS; id++) {
        if (id != RANDOM_MAPPING) {
            check_context(model, id, &oracle->contexts[id]);
        }
    }
}

/* ---- Windows ---- */

static struct model *whole_of(struct timeorder_parts parts, uint64_t slice_events) {
    const struct replay_options options = {.slice_events = slice_events};
    struct model *model = model_replay(parts, &options, NULL);
    assert_non_null(model);
    return model;
}

static void check_window(struct oracle *oracle, const struct model *sliced,
                         const struct model *single, struct timeorder_parts parts, uint64_t from,
                         uint64_t to) {
    struct model *view = model_view(sliced, parts, from, to, NULL, NULL);
    struct model *pass = model_view(single, parts, from, to, NULL, NULL);
    assert_non_null(view);
    assert_non_null(pass);
    check_view(oracle, view, from, to);
    view->totals.maximum_error_bytes = pass->totals.maximum_error_bytes; /* of the slices cut */
    view->header.peak_error_bytes = pass->header.peak_error_bytes;
    assert_models_equal(view, pass);
    assert_int_equal(view->from_ns, from);
    assert_int_equal(view->to_ns, to);
    model_free(view);
    model_free(pass);
}

/* What call paths held at the series' moments is what views that end there tell; of slices as of
 * single events, where these are in order. */
static void check_series(const struct model *whole, struct timeorder_parts parts, bool is_exact) {
    enum { MOMENTS = 12 };
    uint32_t ids[RANDOM_CONTEXTS];
    size_t count = 0;
    struct series series;
    struct error error;
    for (size_t i = 0; i < whole->context_count; i++) {
        if (whole->contexts[i].id != RANDOM_MAPPING) {
            ids[count++] = whole->contexts[i].id;
        }
    }
    assert_int_equal(
        series_make(&series, whole, parts, 0, UINT64_MAX, ids, count, MOMENTS, NULL, &error), 0);
    assert_in_range(series.points, 2, MOMENTS);
    assert_int_equal(series.is_pass, whole->index->count <= SERIES_EDGES);
    for (size_t i = is_exact ? 1 : series.points - 1; i < series.points; i++) {
        struct model *view = model_view(whole, parts, 0, series.times[i], NULL, NULL);
        assert_non_null(view);
        assert_true(series.times[i] > series.times[i - 1]);
        for (size_t row = 0; row < count; row++) {
            const struct model_context *context = model_find(view, ids[row]);
            assert_int_equal(series.live[row * series.points + i],
                             context != NULL ? context->live_bytes : 0);
        }
        model_free(view);
    }
    series_free(&series);
}

static void check_recording(const struct recording_random *options, bool is_damaged) {
    static struct oracle oracle;
    struct recording_build build = {0};
    struct recording *recording;
    struct timeorder_parts parts;
    const struct lives_visitor visitor = {.end = keep, .context = &oracle};
    struct model *sliced;
    struct model *single;
    recording_random(&build, options);
    if (is_damaged) {
        const struct memtrace_index_entry *hit = &build.entries[2 + rand() % (build.count - 3)];
        build.bytes[hit->offset + sizeof hit->block + hit->block.stored_size / 2] ^= 0x55;
        recording_build_index(&build);
    }
    recording_build_write(build.bytes, build.size, path);
    recording = recording_open(path, NULL);
    assert_non_null(recording);
    parts = (struct timeorder_parts){(const struct recording *const *)&recording, 1};
    sliced = whole_of(parts, 200);
    single = whole_of(parts, UINT64_MAX);
    assert_int_equal(single->index->count, 1);
    assert_true(sliced->index->count > 5);
    assert_int_equal(single->damage[0] != '\0', is_damaged);
    assert_models_equal(sliced, single);
    oracle = (struct oracle){.whole = single};
    assert_int_equal(lives_visit(parts, single, &visitor, NULL, NULL), 0);
    check_view(&oracle, single, 0, UINT64_MAX);
    check_window(&oracle, sliced, single, parts, 0, UINT64_MAX);
    for (int i = 0; i < WINDOWS; i++) {
        uint64_t from = recording_random_time(options);
        uint64_t to = i % 4 == 0 ? UINT64_MAX : from + recording_random_time(options) / 3 + 1;
        check_window(&oracle, sliced, single, parts, i % 3 == 0 ? 0 : from, to);
    }
    check_window(&oracle, sliced, single, parts, 0, 1);
    if (!is_damaged) {
        check_series(single, parts, true);
        model_free(sliced);
        sliced = whole_of(parts, 20);
        check_series(sliced, parts, options->threads == 1);
    }
    model_free(sliced);
    model_free(single);
    recording_close(recording);
    recording_build_free(&build);
}

static void one_thread(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 12; seed++) {
        check_recording(
            &(struct recording_random){.seed = seed, .threads = 1, .is_precise = seed % 2}, false);
    }
}

static void several_threads(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 30; seed++) {
        check_recording(&(struct recording_random){.seed = seed,
                                                   .threads = 2 + seed % 5,
                                                   .is_precise = seed % 2,
                                                   .is_late = seed % 3 == 0},
                        false);
    }
}

static void shared_id(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 15; seed++) {
        check_recording(
            &(struct recording_random){
                .seed = seed, .threads = 4, .is_precise = seed % 2, .is_shared = true},
            false);
    }
}

/* A block of events is lost: what is left still adds up, in any slices. */
static void damaged(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 15; seed++) {
        check_recording(&(struct recording_random){.seed = seed,
                                                   .threads = 1 + seed % 5,
                                                   .is_precise = seed % 2},
                        true);
    }
}

static void profile_has_none(void **state) {
    struct model model = {.node_count = 1};
    struct timeorder_parts none = {NULL, 0};
    struct error error = {""};
    (void)state;
    assert_null(model_view(&model, none, 0, 1, NULL, &error));
    assert_non_null(strstr(error.message, "recording"));
}

static int make_file(void **state) {
    int fd = mkstemp(path);
    (void)state;
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0 ? 0 : -1;
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread),       cmocka_unit_test(several_threads),
        cmocka_unit_test(shared_id),        cmocka_unit_test(damaged),
        cmocka_unit_test(profile_has_none),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
