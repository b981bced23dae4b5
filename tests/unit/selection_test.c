/* SPDX-License-Identifier: MIT */
/*
 * selection_test.c: analyze/model/selection: of random recordings, with several threads and late
 * clocks, a filter that lets every block through gives the view without filters, two halves make
 * the whole, and the lives that are handed out are those that plain comparison chooses.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/model/selection.h"
#include "analyze/model/view.h"
#include "tests/unit/model_equal.h"
#include "tests/unit/recording_random.h"

enum { MOST_LIVES = 8000, VIEWS = 4 };

static char path[] = "/tmp/memtrace-selection-XXXXXX";

/* A random recording, replayed. */
struct subject {
    struct recording *recording;
    struct timeorder_parts parts;
    struct model *whole;
};

static void open_subject(struct subject *subject, const struct recording_random *options) {
    struct recording_build build = {0};
    recording_random(&build, options);
    recording_build_write(build.bytes, build.size, path);
    recording_build_free(&build);
    subject->recording = recording_open(path, NULL);
    assert_non_null(subject->recording);
    subject->parts =
        (struct timeorder_parts){(const struct recording *const *)&subject->recording, 1};
    subject->whole = model_replay(subject->parts, NULL, NULL);
    assert_non_null(subject->whole);
}

static void close_subject(struct subject *subject) {
    model_free(subject->whole);
    recording_close(subject->recording);
}

static struct model *answer(const struct subject *subject, const struct selection *selection) {
    struct error error = {""};
    struct model *model =
        selection_model(selection, subject->whole, subject->parts, NULL, NULL, &error);
    if (model == NULL) {
        fail_msg("%s", error.message);
    }
    return model;
}

/* All recordings, and of each some views: the whole run first. */
static void each_view(void (*check)(const struct subject *, const struct selection *)) {
    for (unsigned seed = 0; seed < 12; seed++) {
        const struct recording_random options = {.seed = seed,
                                                 .threads = 1 + seed % 5,
                                                 .is_precise = seed % 2,
                                                 .is_late = seed % 3 == 0,
                                                 .is_shared = seed == 8};
        struct subject subject;
        open_subject(&subject, &options);
        for (int i = 0; i < VIEWS; i++) {
            struct selection selection = selection_all();
            if (i != 0) {
                selection.view.from_ns = i % 2 != 0 ? recording_random_time(&options) : 0;
                selection.view.to_ns =
                    i == 3 ? UINT64_MAX
                           : selection.view.from_ns + recording_random_time(&options) + 1;
            }
            check(&subject, &selection);
        }
        close_subject(&subject);
    }
}

/* ---- A filter that lets everything through ---- */

static bool is_block(const struct model_context *context) {
    return context->class != MODEL_MAPPING;
}

static void same_context(const struct model *left, const struct model_context *a,
                         const struct model *right, const struct model_context *b) {
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->total_bytes, b->total_bytes);
    assert_int_equal(a->allocations, b->allocations);
    assert_int_equal(a->freed_bytes, b->freed_bytes);
    assert_int_equal(a->frees, b->frees);
    assert_int_equal(a->live_bytes, b->live_bytes);
    assert_int_equal(a->live_blocks, b->live_blocks);
    assert_int_equal(a->temporary, b->temporary);
    assert_int_equal(a->peak_bytes, b->peak_bytes);
    assert_int_equal(a->lifetimes == MODEL_NO_LIFETIMES, b->lifetimes == MODEL_NO_LIFETIMES);
    if (a->lifetimes != MODEL_NO_LIFETIMES) {
        assert_memory_equal(&left->lifetimes[a->lifetimes], &right->lifetimes[b->lifetimes],
                            MEMTRACE_LIFETIME_BUCKETS * sizeof *left->lifetimes);
    }
}

static void same_threads(const struct model *got, const struct model *want) {
    size_t at = 0;
    for (size_t i = 0; i < want->thread_count; i++) {
        const struct model_thread *thread = &want->threads[i];
        if (thread->allocations == 0 && thread->frees == 0 && thread->live_bytes == 0) {
            continue; /* a selection leaves them out */
        }
        assert_true(at < got->thread_count);
        assert_memory_equal(&got->threads[at++], thread, sizeof *thread);
    }
    assert_int_equal(at, got->thread_count);
    assert_arrays_equal(got->foreign, got->foreign_count, want->foreign, want->foreign_count,
                        sizeof *got->foreign);
}

static void everything_is_the_view(const struct subject *subject,
                                   const struct selection *selection) {
    struct selection filtered = *selection;
    struct model *want = answer(subject, selection);
    struct model *got;
    size_t at = 0;
    filtered.size.most = UINT64_MAX - 1;
    got = answer(subject, &filtered);
    for (size_t i = 0; i < want->context_count; i++) {
        if (is_block(&want->contexts[i])) {
            assert_true(at < got->context_count);
            same_context(got, &got->contexts[at++], want, &want->contexts[i]);
        }
    }
    assert_int_equal(at, got->context_count);
    same_threads(got, want);
    assert_int_equal(got->totals.maximum_bytes, want->totals.maximum_bytes);
    assert_int_equal(got->totals.maximum_ns, want->totals.maximum_ns);
    assert_int_equal(got->timeline_count, want->timeline_count);
    assert_int_equal(got->from_ns, selection->view.from_ns);
    assert_int_equal(got->to_ns, selection->view.to_ns);
    model_free(want);
    model_free(got);
}

static void a_filter_of_everything(void **state) {
    (void)state;
    each_view(everything_is_the_view);
}

/* ---- Two halves ---- */

static void add(struct model_context *sum, const struct model *model, uint32_t id) {
    static const struct model_context none;
    const struct model_context *context = model_find(model, id);
    context = context != NULL ? context : &none;
    sum->total_bytes += context->total_bytes;
    sum->allocations += context->allocations;
    sum->frees += context->frees;
    sum->live_bytes += context->live_bytes;
    sum->peak_bytes += context->peak_bytes;
    sum->temporary += context->temporary;
}

static void make_the_whole(const struct subject *subject, const struct selection *one,
                           const struct selection *other) {
    struct selection all = selection_all();
    struct model *first = answer(subject, one);
    struct model *second = answer(subject, other);
    struct model *whole;
    all.view = one->view;
    whole = answer(subject, &all);
    for (uint32_t id = 1; id < whole->node_count; id++) {
        struct model_context halves = {0};
        struct model_context both = {0};
        if (id == RANDOM_MAPPING) {
            continue;
        }
        add(&halves, first, id);
        add(&halves, second, id);
        add(&both, whole, id);
        assert_memory_equal(&halves, &both, sizeof both);
    }
    assert_int_equal(first->totals.maximum_bytes + second->totals.maximum_bytes,
                     whole->totals.maximum_bytes);
    model_free(first);
    model_free(second);
    model_free(whole);
}

static void divide(struct selection_range *low, struct selection_range *high, uint64_t at) {
    low->most = at;
    high->least = at + 1;
}

static void halves_of_view(const struct subject *subject, const struct selection *selection) {
    struct selection low = *selection;
    struct selection high = *selection;
    divide(&low.size, &high.size, 400);
    make_the_whole(subject, &low, &high);
    low = high = *selection;
    divide(&low.lifetime, &high.lifetime, UINT64_C(20) << MEMTRACE_TICK_SHIFT);
    make_the_whole(subject, &low, &high);
    low = high = *selection;
    divide(&low.chain_length, &high.chain_length, 2);
    make_the_whole(subject, &low, &high);
    low = high = *selection;
    divide(&low.last_size, &high.last_size, 500);
    make_the_whole(subject, &low, &high);
    low = high = *selection;
    low.born.to_ns = high.born.from_ns = UINT64_C(100) << MEMTRACE_TICK_SHIFT;
    make_the_whole(subject, &low, &high);
    low = high = *selection;
    low.only_leaked = true;
    high.died.to_ns = UINT64_MAX - 1; /* freed at any time */
    make_the_whole(subject, &low, &high);
    low = high = *selection;
    low.classes = 1u << MODEL_HEAP;
    high.classes = 1u << MODEL_POOL;
    low.size.most = high.size.most = UINT64_MAX - 1;
    make_the_whole(subject, &low, &high);
    low = high = *selection;
    divide(&low.depth, &high.depth, 4);
    make_the_whole(subject, &low, &high);
    low = high = *selection;
    divide(&low.group_allocations, &high.group_allocations, 100);
    make_the_whole(subject, &low, &high);
}

static void halves(void **state) {
    (void)state;
    each_view(halves_of_view);
}

/* ---- Single lives ---- */

struct told {
    struct life begun[MOST_LIVES];
    struct life ended[MOST_LIVES];
    size_t begun_count;
    size_t ended_count;
    size_t others;
};

static int note_begin(void *context, const struct life *life) {
    struct told *told = context;
    assert_true(told->begun_count < MOST_LIVES);
    told->begun[told->begun_count++] = *life;
    return 0;
}

static int note_end(void *context, const struct life *life) {
    struct told *told = context;
    assert_true(told->ended_count < MOST_LIVES);
    told->ended[told->ended_count++] = *life;
    return 0;
}

static int note_other(void *context, const struct timeorder_event *event) {
    struct told *told = context;
    (void)event;
    told->others++;
    return 0;
}

static void listen(struct told *told, const struct subject *subject,
                   const struct selection *selection) {
    const struct lives_visitor visitor = {
        .begin = note_begin, .end = note_end, .other = note_other, .context = told};
    memset(told, 0, sizeof *told);
    assert_int_equal(
        selection_visit(selection, subject->whole, subject->parts, NULL, &visitor, NULL, NULL), 0);
}

static bool is_seen(const struct selection *selection, const struct life *life) {
    return life->birth_ns < selection->view.to_ns && life->death_ns >= selection->view.from_ns &&
           life->size >= selection->size.least;
}

/* What a view shows of it. */
static struct life seen(const struct selection *selection, const struct life *life) {
    struct life shown = *life;
    if (life->death_ns >= selection->view.to_ns) {
        shown.death_ns = shown.death_order = LIFE_ALIVE;
        shown.death_thread = shown.death_context = 0;
        shown.is_temporary = shown.is_reallocated = false;
    }
    return shown;
}

static int by_birth(const void *left, const void *right) {
    const struct life *a = left;
    const struct life *b = right;
    return (a->birth_order > b->birth_order) - (a->birth_order < b->birth_order);
}

static void sort_lives(struct life *lives, size_t count) {
    qsort(lives, count, sizeof *lives, by_birth);
}

static void lives_of_view(const struct subject *subject, const struct selection *selection) {
    static struct told all;
    static struct told told;
    struct selection everything = selection_all();
    struct selection large = *selection;
    size_t at = 0;
    listen(&all, subject, &everything);
    assert_int_equal(all.begun_count, all.ended_count);
    large.size.least = 300;
    listen(&told, subject, &large);
    sort_lives(all.ended, all.ended_count);
    sort_lives(told.ended, told.ended_count);
    for (size_t i = 0; i < all.ended_count; i++) {
        if (is_seen(&large, &all.ended[i])) {
            struct life want = seen(&large, &all.ended[i]);
            assert_true(at < told.ended_count);
            assert_memory_equal(&told.ended[at++], &want, sizeof want);
        }
    }
    assert_int_equal(at, told.ended_count);
    if (large.view.from_ns != 0) {
        assert_int_equal(told.begun_count, 0); /* who knows whether they reach the view */
    } else {
        assert_int_equal(told.begun_count, told.ended_count);
    }
    assert_true(told.others <= all.others);
}

static void single_lives(void **state) {
    (void)state;
    each_view(lives_of_view);
}

static bool same_block(struct event_block left, struct event_block right) {
    return left.number == right.number && left.thread == right.thread;
}

/* The last block of a life's chain. */
static const struct life *last_of(const struct told *all, const struct life *life) {
    const struct life *last = life;
    for (size_t i = 0; i < all->ended_count; i++) {
        if (same_block(all->ended[i].chain, life->chain) &&
            all->ended[i].chain_length > last->chain_length) {
            last = &all->ended[i];
        }
    }
    return last;
}

static void chains_of_view(const struct subject *subject, const struct selection *selection) {
    static struct told all;
    static struct told told;
    struct selection everything = selection_all();
    struct selection chains = *selection;
    size_t at = 0;
    if (selection_has_view(selection)) {
        return; /* as above, and slow */
    }
    listen(&all, subject, &everything);
    chains.chain_length = (struct selection_range){2, 3};
    chains.last_size.least = 200;
    listen(&told, subject, &chains);
    assert_int_equal(told.begun_count, 0);
    sort_lives(all.ended, all.ended_count);
    sort_lives(told.ended, told.ended_count);
    for (size_t i = 0; i < all.ended_count; i++) {
        const struct life *last = last_of(&all, &all.ended[i]);
        if (last->chain_length >= 2 && last->chain_length <= 3 && last->size >= 200) {
            assert_true(at < told.ended_count);
            assert_memory_equal(&told.ended[at++], &all.ended[i], sizeof all.ended[i]);
        }
    }
    assert_true(at != 0);
    assert_int_equal(at, told.ended_count);
}

static void chains_wait_for_their_end(void **state) {
    (void)state;
    each_view(chains_of_view);
}

static int stop_soon(void *context, const struct life *life) {
    unsigned *left = context;
    (void)life;
    return --*left == 0 ? 77 : 0;
}

/* A visitor's value ends the pass, whatever is still kept of chains. */
static void a_visitor_ends_it(void **state) {
    struct subject subject;
    struct selection selection = selection_all();
    (void)state;
    open_subject(&subject, &(struct recording_random){.seed = 5, .threads = 3});
    selection.chain_length.least = 2;
    for (unsigned count = 1; count < 200; count += 40) {
        unsigned left = count;
        const struct lives_visitor visitor = {.end = stop_soon, .context = &left};
        assert_int_equal(
            selection_visit(&selection, subject.whole, subject.parts, NULL, &visitor, NULL, NULL),
            77);
        assert_int_equal(left, 0);
    }
    close_subject(&subject);
}

/* ---- Files that say anything ---- */

/* Any values, but for sizes: sums of them are to fit. */
static void add_wild(struct recording_build *build, uint64_t seed, uint32_t thread) {
    struct stream stream = stream_start(seed, thread, 1);
    struct event_encoder *encoder = event_encoder_new(0);
    struct event event;
    assert_non_null(encoder);
    stream.wild = true;
    event_encoder_start(encoder, thread, 1);
    for (int i = 0; i < 800; i++) {
        stream_next(&stream, &event);
        event.size &= (UINT64_C(1) << 40) - 1;
        event.weight &= (UINT64_C(1) << 40) - 1;
        assert_int_equal(event_encoder_add(encoder, &event), 0);
    }
    recording_build_encoded(build, encoder, thread);
    event_encoder_free(encoder);
}

static void open_wild(struct subject *subject, uint64_t seed) {
    struct recording_build build = {0};
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    recording_build_tree(&build);
    for (uint32_t thread = 0; thread < 3; thread++) {
        add_wild(&build, seed * 3 + thread, thread);
    }
    recording_build_write(build.bytes, build.size, path);
    recording_build_free(&build);
    subject->recording = recording_open(path, NULL);
    assert_non_null(subject->recording);
    subject->parts =
        (struct timeorder_parts){(const struct recording *const *)&subject->recording, 1};
    subject->whole = model_replay(subject->parts, NULL, NULL);
    assert_non_null(subject->whole);
}

/* Nothing but that it ends well; the sanitizers look on. */
static void wild_values(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct subject subject;
        struct selection selection = selection_all();
        open_wild(&subject, seed);
        selection.size.most = UINT64_C(1) << 40;
        model_free(answer(&subject, &selection));
        selection.view = (struct selection_times){UINT64_C(1) << 30, UINT64_C(1) << 59};
        selection.scope = "begin of the third phase \xff";
        model_free(answer(&subject, &selection));
        selection = selection_all();
        selection.chain_length.least = 2;
        selection.lifetime.least = 1;
        selection.address.most = UINT64_C(1) << 47;
        model_free(answer(&subject, &selection));
        close_subject(&subject);
    }
}

/* ---- What is asked of what ---- */

static void everything_is_a_copy(void **state) {
    struct subject subject;
    struct selection all = selection_all();
    struct model *copy;
    (void)state;
    open_subject(&subject, &(struct recording_random){.seed = 3, .threads = 4});
    copy = answer(&subject, &all);
    assert_models_equal(copy, subject.whole);
    model_free(copy);
    close_subject(&subject);
}

static void profiles_know_no_blocks(void **state) {
    struct model model = {.node_count = 1, .to_ns = UINT64_MAX};
    struct timeorder_parts none = {NULL, 0};
    struct selection selection = selection_all();
    const struct lives_visitor visitor = {.end = stop_soon};
    struct error error = {""};
    (void)state;
    selection.size.least = 1;
    assert_null(selection_model(&selection, &model, none, NULL, NULL, &error));
    assert_non_null(strstr(error.message, "recording"));
    selection = selection_all();
    selection.view.to_ns = 5;
    assert_null(selection_model(&selection, &model, none, NULL, NULL, &error));
    assert_int_equal(selection_visit(&selection, &model, none, NULL, &visitor, NULL, &error), -1);
}

static void what_is_asked(void **state) {
    struct selection selection = selection_all();
    (void)state;
    assert_true(selection_is_all(&selection));
    assert_false(selection_needs_lives(&selection) || selection_asks_ends(&selection));
    selection.view.from_ns = 1;
    assert_true(selection_has_view(&selection) && selection_asks_ends(&selection));
    assert_false(selection_needs_lives(&selection) || selection_is_all(&selection));
    selection = selection_all();
    selection.scope = "load";
    assert_true(selection_needs_lives(&selection));
    assert_false(selection_asks_ends(&selection));
    selection.last_size.most = 5;
    assert_true(selection_asks_chains(&selection) && selection_asks_ends(&selection));
    selection = selection_all();
    selection.only_temporary = true;
    assert_true(selection_asks_deaths(&selection) && !selection_asks_chains(&selection));
    selection = selection_all();
    selection.depth.most = 4;
    assert_true(selection_asks_contexts(&selection) && !selection_needs_lives(&selection));
}

static void wrong_patterns(void **state) {
    struct selection selection = selection_all();
    struct error error = {""};
    (void)state;
    assert_int_equal(selection_add_pattern(&selection, SELECTION_FUNCTION, false, "a(b", &error),
                     -1);
    assert_non_null(strstr(error.message, "a(b"));
    assert_int_equal(selection.pattern_count, 0);
    assert_int_equal(selection_add_pattern(&selection, SELECTION_FILE, true, "a|b", &error), 0);
    assert_int_equal(selection.pattern_count, 1);
    assert_false(selection_is_all(&selection));
    selection_free(&selection);
    assert_true(selection_is_all(&selection));
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
        cmocka_unit_test(a_filter_of_everything), cmocka_unit_test(halves),
        cmocka_unit_test(single_lives),           cmocka_unit_test(chains_wait_for_their_end),
        cmocka_unit_test(a_visitor_ends_it),      cmocka_unit_test(wild_values),
        cmocka_unit_test(everything_is_a_copy),   cmocka_unit_test(profiles_know_no_blocks),
        cmocka_unit_test(what_is_asked),          cmocka_unit_test(wrong_patterns),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
