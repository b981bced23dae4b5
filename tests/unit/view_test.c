/* SPDX-License-Identifier: MIT */
/*
 * view_test.c: analyze/window/view: windows of random recordings (several threads, reallocations,
 * mappings, late and precise clocks, a shared thread id) against what all blocks' lives say one by
 * one; the sums of many slices against those of one, and those of neighbours; and slices in pieces
 * (fineindex.h) against whole ones, also where the file of the pieces is damaged, cut or gone.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/lives.h"
#include "analyze/window/fineindex.h"
#include "analyze/window/index.h"
#include "analyze/window/series.h"
#include "analyze/window/view.h"
#include "analyze/window/wholemodel.h"
#include "tests/unit/model_equal.h"
#include "tests/unit/recording_builder.h"
#include "tests/unit/recording_random.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LIVES = 8000, WINDOWS = 12 };
#ifdef __SANITIZE_ADDRESS__ /* four times as long, and what it would find each recording has */
#define SEEDS(count) ((count) / 3)
#else
#define SEEDS(count) (count)
#endif

static char path[] = "/tmp/memtrace-view-XXXXXX";
static char root[] = "/tmp/memtrace-view-cache-XXXXXX"; /* the cache's folder */

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
    const struct random_before *before; /* as recording_random has it */
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

/* Of that there are no lives: what the program did to it stands for them. */
static size_t expect_before(struct oracle *oracle, struct change *changes) {
    struct expected *context = &oracle->contexts[RANDOM_BEFORE];
    size_t count = 0;
    for (const struct random_before *at = oracle->before; at != NULL && at->bytes != 0; at++) {
        context->live += at->time_ns < oracle->to ? (uint64_t)at->bytes : 0;
        context->base += at->time_ns < oracle->from ? (uint64_t)at->bytes : 0;
        if (is_inside(oracle, at->time_ns)) {
            context->frees += at->bytes < 0;
            context->freed += at->bytes < 0 ? (uint64_t)-at->bytes : 0;
            changes[count++] = (struct change){at->order, at->bytes, RANDOM_BEFORE};
        }
    }
    return count;
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
    struct change *changes = calloc(2 * MOST_LIVES + RANDOM_EVENTS, sizeof *changes);
    size_t count = 0;
    int64_t held = 0;
    int64_t highest = 0;
    size_t until = 0;
    assert_non_null(changes);
    count = expect_before(oracle, changes);
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
    assert_int_equal(model->totals.before_bytes, oracle->contexts[RANDOM_BEFORE].live);
    for (uint32_t id = RANDOM_BEFORE; id <= RANDOM_CONTEXTS; id++) {
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

/* ---- Pieces ---- */

static const struct replay_options pieces = {.slice_events = 100};

/* Slices of about 1,500 events in pieces of about 100. */
static struct model *fine_of(struct timeorder_parts parts) {
    struct model *model = whole_of(parts, 1500);
    assert_true(fineindex_prepare(model, parts, &pieces));
    return model;
}

/* How many slices are in pieces. */
static size_t refined(const struct model *model, struct timeorder_parts parts) {
    const struct fineindex *fine = fineindex_of(model, parts);
    size_t count = 0;
    for (size_t i = 0; i < model->index->count; i++) {
        const struct fineindex_piece *first;
        count += fineindex_pieces(fine, i, &first) != 0;
    }
    return count;
}

/* Windows of pieces are those of whole slices, in every figure. */
static void same_window(const struct model *fine, const struct model *coarse,
                        struct timeorder_parts parts, uint64_t from, uint64_t to) {
    struct model *view = model_view(fine, parts, from, to, NULL, NULL);
    struct model *pass = model_view(coarse, parts, from, to, NULL, NULL);
    assert_non_null(view);
    assert_non_null(pass);
    assert_models_equal(view, pass);
    model_free(view);
    model_free(pass);
}

static void check_pieces(const struct recording_random *options, struct timeorder_parts parts) {
    struct model *coarse = whole_of(parts, 1500);
    struct model *fine = fine_of(parts);
    atomic_store(&coarse->index->has_looked, true); /* it is to know none */
    coarse->index->fine = NULL;
    assert_int_equal(refined(fine, parts), fine->index->count);
    for (int i = 0; i < 2 * WINDOWS; i++) {
        uint64_t from = recording_random_time(options);
        uint64_t to = i % 4 == 0 ? UINT64_MAX : from + recording_random_time(options) / 3 + 1;
        same_window(fine, coarse, parts, i % 3 == 0 ? 0 : from, to);
    }
    same_window(fine, coarse, parts, 0, 1);
    model_free(coarse);
    model_free(fine);
}

/* Windows of sums of neighbours are those of single slices, in every figure. */
static void check_groups(const struct recording_random *options, struct timeorder_parts parts) {
    struct model *plain = whole_of(parts, 20);
    struct model *grouped = whole_of(parts, 20);
    size_t width = 0;
    index_group(grouped->index, NULL);
    assert_null(index_group_at(plain->index, 0, SIZE_MAX, &width));
    assert_int_equal(index_group_at(grouped->index, 0, SIZE_MAX, &width) != NULL,
                     grouped->index->count >= 8);
    if (options->threads == 1) { /* blocks of several are long, and slices few */
        assert_true(grouped->index->count >= 128);
        assert_null(index_group_at(grouped->index, 7, SIZE_MAX, &width));
        assert_non_null(index_group_at(grouped->index, 8, SIZE_MAX, &width));
        assert_int_equal(width, 8);
        assert_non_null(index_group_at(grouped->index, 64, 511, &width));
        assert_int_equal(width, 64);
    }
    same_window(grouped, plain, parts, 0, UINT64_MAX);
    for (int i = 0; i < 2 * WINDOWS; i++) {
        uint64_t from = recording_random_time(options);
        uint64_t to = i % 4 == 0 ? UINT64_MAX : from + recording_random_time(options) + 1;
        same_window(grouped, plain, parts, i % 3 == 0 ? 0 : from, to);
    }
    model_free(plain);
    model_free(grouped);
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
    assert_uint_in_range(series.points, 2, MOMENTS);
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
    oracle = (struct oracle){.whole = single, .before = options->before};
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
        check_pieces(options, parts);
        check_groups(options, parts);
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
    for (unsigned seed = 0; seed < SEEDS(12); seed++) {
        check_recording(
            &(struct recording_random){.seed = seed, .threads = 1, .is_precise = seed % 2}, false);
    }
}

static void attached_to(void **state) {
    static struct random_before before[RANDOM_EVENTS + 1];
    (void)state;
    for (unsigned seed = 0; seed < SEEDS(6); seed++) {
        memset(before, 0, sizeof before);
        check_recording(
            &(struct recording_random){
                .seed = seed, .threads = 1, .is_precise = seed % 2, .before = before},
            false);
    }
}

static void several_threads(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < SEEDS(30); seed++) {
        check_recording(&(struct recording_random){.seed = seed,
                                                   .threads = 2 + seed % 5,
                                                   .is_precise = seed % 2,
                                                   .is_late = seed % 3 == 0},
                        false);
    }
}

static void shared_id(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < SEEDS(15); seed++) {
        check_recording(
            &(struct recording_random){
                .seed = seed, .threads = 4, .is_precise = seed % 2, .is_shared = true},
            false);
    }
}

/* A block of events is lost: what is left still adds up, in any slices. */
static void damaged(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < SEEDS(15); seed++) {
        check_recording(&(struct recording_random){.seed = seed,
                                                   .threads = 1 + seed % 5,
                                                   .is_precise = seed % 2},
                        true);
    }
}

/* ---- What happens to the file of the pieces ---- */

struct spoiling {
    struct recording *recording;
    struct timeorder_parts parts;
    struct model *coarse; /* knows of no pieces */
    struct recording_random options;
};

static void start_spoiling(struct spoiling *spoiling, unsigned seed) {
    struct recording_build build = {0};
    spoiling->options = (struct recording_random){.seed = seed, .threads = 3};
    recording_random(&build, &spoiling->options);
    recording_build_write(build.bytes, build.size, path);
    recording_build_free(&build);
    spoiling->recording = recording_open(path, NULL);
    assert_non_null(spoiling->recording);
    spoiling->parts =
        (struct timeorder_parts){(const struct recording *const *)&spoiling->recording, 1};
    spoiling->coarse = whole_of(spoiling->parts, 1500);
    atomic_store(&spoiling->coarse->index->has_looked, true);
}

static void end_spoiling(struct spoiling *spoiling) {
    model_free(spoiling->coarse);
    recording_close(spoiling->recording);
}

static const char *kept_file(struct timeorder_parts parts) {
    static char file[PATH_MAX];
    char name[MODELCACHE_NAME];
    modelcache_name(parts, false, name);
    snprintf(file, sizeof file, "%s/fine/%s", root, name);
    return file;
}

static void some_windows(const struct spoiling *spoiling, const struct model *model) {
    for (int i = 0; i < WINDOWS; i++) {
        uint64_t from = recording_random_time(&spoiling->options);
        uint64_t to = from + recording_random_time(&spoiling->options) / 3 + 1;
        same_window(model, spoiling->coarse, spoiling->parts, from, to);
    }
}

static void spoil(const char *file, off_t at, bool cuts) {
    unsigned char byte;
    int fd = open(file, O_RDWR);
    assert_true(fd >= 0);
    if (cuts) {
        assert_int_equal(ftruncate(fd, at), 0);
    } else {
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x20;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
}

/* A byte is another one, or the file ends early; before it is opened or while it is in use. */
static void pieces_spoiled(void **state) {
    struct spoiling spoiling;
    (void)state;
    start_spoiling(&spoiling, 1);
    for (unsigned i = 0; i < 60; i++) {
        bool cuts = i % 4 == 0;
        bool is_open = i % 3 == 0;
        const char *file = kept_file(spoiling.parts);
        struct model *model = fine_of(spoiling.parts);
        struct stat status;
        assert_int_equal(stat(file, &status), 0);
        if (!is_open) {
            model_free(model);
        }
        spoil(file, rand() % status.st_size, cuts);
        if (!is_open) {
            model = whole_of(spoiling.parts, 1500);
        }
        some_windows(&spoiling, model);
        model_free(model);
        model = fine_of(spoiling.parts); /* made anew */
        assert_int_equal(refined(model, spoiling.parts), model->index->count);
        some_windows(&spoiling, model);
        model_free(model);
    }
    end_spoiling(&spoiling);
}

/* That of another recording, or of other slices of this one, under this one's name. */
static void pieces_of_others(void **state) {
    struct spoiling spoiling;
    struct model *model;
    char other[PATH_MAX];
    (void)state;
    start_spoiling(&spoiling, 2);
    model_free(fine_of(spoiling.parts));
    snprintf(other, sizeof other, "%s", kept_file(spoiling.parts));
    end_spoiling(&spoiling);
    start_spoiling(&spoiling, 3);
    assert_int_equal(rename(other, kept_file(spoiling.parts)), 0);
    model = whole_of(spoiling.parts, 1500);
    assert_null(fineindex_of(model, spoiling.parts));
    some_windows(&spoiling, model);
    model_free(model);
    model_free(fine_of(spoiling.parts));
    model = whole_of(spoiling.parts, 1000);
    assert_null(fineindex_of(model, spoiling.parts));
    model_free(model);
    end_spoiling(&spoiling);
}

/* No right to write, no room, and no cache: there are none, and nothing is left behind. */
static void pieces_not_kept(void **state) {
    const struct rlimit none = {4000, RLIM_INFINITY};
    const struct rlimit any = {RLIM_INFINITY, RLIM_INFINITY};
    struct spoiling spoiling;
    struct model *model;
    (void)state;
    start_spoiling(&spoiling, 4);
    for (int i = 0; i < 3; i++) {
        model = whole_of(spoiling.parts, 1500);
        if (i == 0) {
            setenv("MEMTRACE_CACHE", "/proc/no-such-folder", 1);
        } else if (i == 1) {
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &none);
        } else {
            setenv("MEMTRACE_CACHE", "", 1);
        }
        assert_false(fineindex_prepare(model, spoiling.parts, &pieces));
        setrlimit(RLIMIT_FSIZE, &any);
        setenv("MEMTRACE_CACHE", root, 1);
        assert_int_equal(access(kept_file(spoiling.parts), F_OK), -1);
        some_windows(&spoiling, model);
        model_free(model);
    }
    end_spoiling(&spoiling);
}

/* Who has it open keeps it. */
static void pieces_of_two(void **state) {
    struct spoiling spoiling;
    struct model *first;
    struct model *second;
    (void)state;
    start_spoiling(&spoiling, 5);
    first = fine_of(spoiling.parts);
    second = fine_of(spoiling.parts);
    assert_int_equal(unlink(kept_file(spoiling.parts)), 0);
    some_windows(&spoiling, first);
    some_windows(&spoiling, second);
    assert_int_equal(refined(first, spoiling.parts), first->index->count);
    model_free(first);
    model_free(second);
    end_spoiling(&spoiling);
}

/* A pass that is given up keeps nothing. */
static void pieces_cancelled(void **state) {
    atomic_bool cancel = true;
    const struct replay_options options = {.slice_events = 100, .cancel = &cancel};
    struct spoiling spoiling;
    struct model *model;
    (void)state;
    start_spoiling(&spoiling, 6);
    model = whole_of(spoiling.parts, 1500);
    assert_false(fineindex_prepare(model, spoiling.parts, &options));
    assert_int_equal(access(kept_file(spoiling.parts), F_OK), -1);
    some_windows(&spoiling, model);
    model_free(model);
    end_spoiling(&spoiling);
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
    return fd >= 0 && mkdtemp(root) != NULL && setenv("MEMTRACE_CACHE", root, 1) == 0 ? 0 : -1;
}

static int remove_file(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? unlink(path) : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread),       cmocka_unit_test(attached_to),
        cmocka_unit_test(several_threads),  cmocka_unit_test(shared_id),
        cmocka_unit_test(damaged),          cmocka_unit_test(profile_has_none),
        cmocka_unit_test(pieces_spoiled),   cmocka_unit_test(pieces_of_others),
        cmocka_unit_test(pieces_not_kept),  cmocka_unit_test(pieces_of_two),
        cmocka_unit_test(pieces_cancelled),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
