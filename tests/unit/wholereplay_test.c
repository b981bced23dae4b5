/* SPDX-License-Identifier: MIT */
/*
 * wholereplay_test.c: analyze/window/wholereplay: a recording that grows, looked at again and
 * again, each time in what may be another process, is at each moment what one replay of all of it
 * gives; and a look goes through what was added, not through what was seen before.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/window/view.h"
#include "analyze/window/wholemodel.h"
#include "analyze/window/wholereplay.h"
#include "tests/unit/model_equal.h"
#include "tests/unit/recording_builder.h"
#include "tests/unit/recording_random.h"

static const char path[] = "wholereplay-test.mtr";
static const struct replay_options few = {.slice_events = 200};

struct subject {
    struct recording *recording;
    struct timeorder_parts parts;
};

/* The recording as far as its first `blocks` blocks; all: with what comes after them. */
static void open_until(struct subject *subject, const struct recording_build *build,
                       size_t blocks) {
    size_t size = blocks < build->count ? build->entries[blocks].offset : build->size;
    recording_build_write(build->bytes, size, path);
    subject->recording = recording_open(path, NULL);
    assert_non_null(subject->recording);
    subject->parts =
        (struct timeorder_parts){(const struct recording *const *)&subject->recording, 1};
}

/* As another process would go on with it. */
static struct wholereplay *pass_on(struct wholereplay *replay, struct timeorder_parts parts) {
    struct varint_writer bytes = {0};
    struct wholereplay *next;
    wholereplay_pack(replay, parts, &bytes);
    assert_false(bytes.failed);
    next = wholereplay_unpack(bytes.bytes, bytes.size, parts);
    assert_non_null(next);
    free(bytes.bytes);
    wholereplay_free(replay);
    return next;
}

/* The model that a replay which is gone on with gives at the end. NULL: something came too late. */
static struct model *finish(struct wholereplay *replay, struct timeorder_parts parts) {
    struct model *model = wholemodel_tables(parts, NULL);
    enum wholereplay_result result;
    assert_non_null(model);
    result = wholereplay_run(replay, model, parts, UINT64_MAX, &few);
    if (result == WHOLEREPLAY_ANEW) {
        wholereplay_free(replay);
        model_free(model);
        return NULL;
    }
    assert_int_equal(result, WHOLEREPLAY_OK);
    assert_int_equal(wholemodel_finish(model, parts, replay), 0);
    return model;
}

static void same_views(const struct subject *subject, const struct model *left,
                       const struct model *right, const struct recording_random *options) {
    for (int i = 0; i < 3; i++) {
        uint64_t from = recording_random_time(options);
        uint64_t to = from + recording_random_time(options) / 2 + 1;
        struct model *a = model_view(left, subject->parts, from, to, NULL, NULL);
        struct model *b = model_view(right, subject->parts, from, to, NULL, NULL);
        assert_non_null(a);
        assert_non_null(b);
        a->header.peak_error_bytes = b->header.peak_error_bytes; /* of a slice: these differ */
        a->totals.maximum_error_bytes = b->totals.maximum_error_bytes;
        assert_models_equal(a, b);
        model_free(a);
        model_free(b);
    }
}

/* As far as all is there, then a copy of it to the end. *kept: what is passed on, NULL: there was
 * nothing; then that of the next look. NULL: something came too late. */
static struct model *try(const struct subject *subject, struct wholereplay **kept,
                         uint64_t *events) {
    struct model *tables = wholemodel_tables(subject->parts, NULL);
    uint64_t until = wholereplay_settled(subject->parts);
    struct wholereplay *copy = wholereplay_new();
    struct varint_writer bytes = {0};
    enum wholereplay_result result = WHOLEREPLAY_OK;
    assert_non_null(tables);
    *kept = *kept != NULL ? *kept : wholereplay_new();
    if (until > (*kept)->until_ns) {
        result = wholereplay_run(*kept, tables, subject->parts, until, &few);
        *events += (*kept)->events;
    }
    model_free(tables);
    if (result != WHOLEREPLAY_OK || (*kept)->until_ns == 0) {
        assert_int_not_equal(result, WHOLEREPLAY_FAILED);
        if (result == WHOLEREPLAY_OK) {
            return finish(copy, subject->parts);
        }
        wholereplay_free(copy);
        return NULL;
    }
    wholereplay_free(copy);
    *kept = pass_on(*kept, subject->parts);
    wholereplay_pack(*kept, subject->parts, &bytes);
    copy = wholereplay_unpack(bytes.bytes, bytes.size, subject->parts);
    free(bytes.bytes);
    assert_non_null(copy);
    return finish(copy, subject->parts);
}

/* One look at the first `blocks` blocks. Returns how many events it went through. */
static uint64_t look(const struct recording_build *build, size_t blocks,
                     const struct recording_random *options, struct wholereplay **kept) {
    struct subject subject;
    struct model *model;
    struct model *whole;
    uint64_t events = 0;
    open_until(&subject, build, blocks);
    model = try(&subject, kept, &events);
    if (model == NULL) {
        wholereplay_free(*kept);
        *kept = NULL;
        model = try(&subject, kept, &events);
    }
    assert_non_null(model);
    whole = model_replay(subject.parts, &few, NULL);
    assert_non_null(whole);
    assert_models_equal(model, whole);
    same_views(&subject, model, whole, options);
    model_free(model);
    model_free(whole);
    recording_close(subject.recording);
    return events;
}

static void grows(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 24; seed++) {
        const struct recording_random options = {.seed = seed,
                                                 .threads = 1 + seed % 5,
                                                 .is_precise = seed % 2,
                                                 .is_late = seed % 7 == 3,
                                                 .inherited = seed % 3 == 0 ? 900 : 0,
                                                 .is_sampled_often = true};
        struct recording_build build = {0};
        struct wholereplay *kept = NULL;
        recording_random(&build, &options);
        for (size_t blocks = 4; blocks < build.count; blocks += 1 + (size_t)rand() % 12) {
            look(&build, blocks, &options, &kept);
        }
        look(&build, build.count, &options, &kept);
        wholereplay_free(kept);
        recording_build_free(&build);
    }
}

/* A program with one thread: each event is met once by the looks, and once more by what comes after
 * the last whole clock tick. */
static void costs_what_was_added(void **state) {
    const struct recording_random options = {.seed = 7, .threads = 1, .is_sampled_often = true};
    struct recording_build build = {0};
    struct wholereplay *kept = NULL;
    uint64_t all = 0;
    (void)state;
    recording_random(&build, &options);
    for (size_t blocks = 6; blocks < build.count; blocks += 2) {
        all += look(&build, blocks, &options, &kept);
    }
    all += look(&build, build.count, &options, &kept);
    assert_uint_in_range(all, RANDOM_EVENTS * 9 / 10, RANDOM_EVENTS);
    wholereplay_free(kept);
    recording_build_free(&build);
}

/* A block with events from before the last look, a stream's or a new one's. */
static void too_late(void **state) {
    const struct recording_random options = {.seed = 3, .threads = 2, .is_sampled_often = true};
    struct recording_build build = {0};
    struct subject subject;
    struct model *tables;
    struct wholereplay *replay = wholereplay_new();
    (void)state;
    recording_random(&build, &options);
    open_until(&subject, &build, 40);
    tables = wholemodel_tables(subject.parts, NULL);
    assert_int_equal(wholereplay_run(replay, tables, subject.parts,
                                     UINT64_C(100000) << MEMTRACE_TICK_SHIFT, &few),
                     WHOLEREPLAY_OK);
    recording_close(subject.recording);
    open_until(&subject, &build, 60);
    assert_int_equal(wholereplay_run(replay, tables, subject.parts, UINT64_MAX, &few),
                     WHOLEREPLAY_ANEW);
    recording_close(subject.recording);
    model_free(tables);
    wholereplay_free(replay);
    recording_build_free(&build);
}

/* Kept of another recording, or damaged. */
static void not_of_this_one(void **state) {
    struct recording_random options = {.seed = 3, .threads = 2, .is_sampled_often = true};
    struct recording_build build = {0};
    struct varint_writer bytes = {0};
    struct subject subject;
    struct model *tables;
    struct wholereplay *replay = wholereplay_new();
    (void)state;
    recording_random(&build, &options);
    open_until(&subject, &build, 40);
    tables = wholemodel_tables(subject.parts, NULL);
    assert_int_equal(
        wholereplay_run(replay, tables, subject.parts, wholereplay_settled(subject.parts), &few),
        WHOLEREPLAY_OK);
    wholereplay_pack(replay, subject.parts, &bytes);
    for (size_t size = 0; size < bytes.size; size += 1 + bytes.size / 200) {
        assert_null(wholereplay_unpack(bytes.bytes, size, subject.parts));
    }
    for (size_t i = 0; i < bytes.size; i += 1 + bytes.size / 400) { /* no crash */
        bytes.bytes[i] ^= 0x41;
        wholereplay_free(wholereplay_unpack(bytes.bytes, bytes.size, subject.parts));
        bytes.bytes[i] ^= 0x41;
    }
    recording_close(subject.recording);
    recording_build_free(&build);
    build = (struct recording_build){0};
    options.seed = 4;
    recording_random(&build, &options);
    open_until(&subject, &build, 40);
    assert_null(wholereplay_unpack(bytes.bytes, bytes.size, subject.parts));
    recording_close(subject.recording);
    recording_build_free(&build);
    free(bytes.bytes);
    model_free(tables);
    wholereplay_free(replay);
}

/* ---- Slices in the recording ---- */

/* The recording with these bytes as its slices, closed. */
static void open_with(struct subject *subject, const struct recording_build *build,
                      const struct varint_writer *slices) {
    struct recording_build all = *build;
    all.bytes = malloc(build->size);
    memcpy(all.bytes, build->bytes, build->size);
    recording_build_block(&all, (struct memtrace_block_header){.kind = MEMTRACE_BLOCK_SLICES},
                          slices->bytes, slices->size);
    recording_build_index(&all);
    recording_build_write(all.bytes, all.size, path);
    free(all.bytes);
    subject->recording = recording_open(path, NULL);
    assert_non_null(subject->recording);
    subject->parts =
        (struct timeorder_parts){(const struct recording *const *)&subject->recording, 1};
}

static struct model *indexed(struct subject *subject) {
    struct model *model = wholemodel_tables(subject->parts, NULL);
    struct wholereplay *replay = wholereplay_new();
    assert_non_null(model);
    assert_int_equal(wholereplay_run(replay, model, subject->parts, UINT64_MAX, &few),
                     WHOLEREPLAY_OK);
    replay->index->keeps_all = true;
    assert_int_equal(wholemodel_finish(model, subject->parts, replay), 0);
    return model;
}

static void pack_slices(const struct recording_build *build, struct varint_writer *bytes) {
    struct subject subject;
    struct model *whole;
    open_until(&subject, build, build->count);
    whole = indexed(&subject);
    *bytes = (struct varint_writer){0};
    index_pack(whole->index, index_cover(subject.parts, UINT64_MAX), bytes);
    model_free(whole);
    recording_close(subject.recording);
}

/* What they say is what a replay says. */
static void in_the_file(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 8; seed++) {
        const struct recording_random options = {.seed = seed,
                                                 .threads = 1 + seed % 4,
                                                 .is_precise = seed % 2,
                                                 .inherited = seed % 3 == 0 ? 900 : 0};
        struct recording_build build = {0};
        struct varint_writer slices;
        struct subject subject;
        struct model *model;
        struct model *whole;
        recording_random(&build, &options);
        pack_slices(&build, &slices);
        open_with(&subject, &build, &slices);
        model = modelcache_load(subject.parts);
        whole = model_replay(subject.parts, &few, NULL);
        assert_non_null(model);
        assert_models_equal(model, whole);
        same_views(&subject, model, whole, &options);
        model_free(model);
        model_free(whole);
        recording_close(subject.recording);
        recording_build_free(&build);
        free(slices.bytes);
    }
}

/* Of another recording, of this one as it was, cut off, or with something behind them. */
static void not_these_slices(void **state) {
    struct recording_random options = {.seed = 1, .threads = 2};
    struct recording_build build = {0};
    struct recording_build other = {0};
    struct varint_writer slices;
    struct varint_writer own;
    struct subject subject;
    (void)state;
    recording_random(&build, &options);
    options.seed = 2;
    recording_random(&other, &options);
    pack_slices(&other, &slices);
    open_with(&subject, &build, &slices);
    assert_null(modelcache_load(subject.parts));
    recording_close(subject.recording);
    free(slices.bytes);

    pack_slices(&build, &own);
    for (size_t size = 0; size < own.size; size += 1 + own.size / 60) {
        struct varint_writer part = {.bytes = own.bytes, .size = size};
        open_with(&subject, &build, &part);
        assert_null(modelcache_load(subject.parts));
        recording_close(subject.recording);
    }
    varint_put_byte(&own, 0);
    open_with(&subject, &build, &own);
    assert_null(modelcache_load(subject.parts));
    recording_close(subject.recording);
    own.size--;
    recording_build_items(&build, MEMTRACE_BLOCK_SAMPLES, &(struct memtrace_sample){.time_ns = 9},
                          sizeof(struct memtrace_sample), 1);
    open_with(&subject, &build, &own);
    assert_null(modelcache_load(subject.parts));
    recording_close(subject.recording);
    free(own.bytes);
    recording_build_free(&build);
    recording_build_free(&other);
}

/* Slices that claim more events, less, or other sums than their own. */
static void contradictions(void **state) {
    const struct recording_random options = {.seed = 5, .threads = 2};
    struct recording_build build = {0};
    struct subject subject;
    struct index *index;
    (void)state;
    recording_random(&build, &options);
    for (int what = 0; what < 7; what++) {
        struct varint_writer slices = {0};
        struct model *whole;
        struct model *model;
        open_until(&subject, &build, build.count);
        whole = indexed(&subject);
        index = whole->index;
        index->entries[1].slice.events += what == 1;
        index->entries[1].slice.events -= what == 2;
        index->all.change += what == 3;
        index->entries[2].start_ns =
            what == 4 ? index->entries[1].start_ns : index->entries[2].start_ns;
        index->facts.missing += what == 5;
        index->entries[1].slice.contexts += what == 6;
        index_pack(index, index_cover(subject.parts, UINT64_MAX), &slices);
        model_free(whole);
        recording_close(subject.recording);
        open_with(&subject, &build, &slices);
        model = modelcache_load(subject.parts);
        assert_int_equal(model != NULL, what == 0);
        model_free(model);
        recording_close(subject.recording);
        free(slices.bytes);
    }
    recording_build_free(&build);
}

/* Any bytes changed, checksums right: it may lie, but not crash. */
static void hostile(void **state) {
    const struct recording_random options = {.seed = 6, .threads = 3};
    struct recording_build build = {0};
    struct varint_writer slices;
    struct subject subject;
    unsigned believed = 0;
    (void)state;
    recording_random(&build, &options);
    pack_slices(&build, &slices);
    srand(11);
    for (int turn = 0; turn < 600; turn++) {
        struct varint_writer changed = {.bytes = malloc(slices.size), .size = slices.size};
        struct model *model;
        memcpy(changed.bytes, slices.bytes, slices.size);
        for (int i = 0; i < 1 + turn % 3; i++) {
            changed.bytes[20 + (size_t)rand() % (slices.size - 20)] ^= (unsigned char)(1 + rand());
        }
        open_with(&subject, &build, &changed);
        model = modelcache_load(subject.parts);
        if (model != NULL) {
            uint64_t from = recording_random_time(&options);
            struct model *view =
                model_view(model, subject.parts, from, from + (1 << 28), NULL, NULL);
            believed++;
            model_free(view);
        }
        model_free(model);
        recording_close(subject.recording);
        free(changed.bytes);
    }
    assert_uint_in_range(believed, 1, 599); /* some are only other numbers */
    free(slices.bytes);
    recording_build_free(&build);
}

static int remove_file(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows),          cmocka_unit_test(costs_what_was_added),
        cmocka_unit_test(too_late),       cmocka_unit_test(not_of_this_one),
        cmocka_unit_test(in_the_file),    cmocka_unit_test(not_these_slices),
        cmocka_unit_test(contradictions), cmocka_unit_test(hostile),
    };
    setenv("MEMTRACE_CACHE", "", 1);
    return cmocka_run_group_tests(tests, NULL, remove_file);
}
