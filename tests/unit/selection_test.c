/* SPDX-License-Identifier: MIT */
/*
 * selection_test.c: analyze/filter/selection: of random recordings a filter that lets every block
 * through gives the view without filters, and two halves make the whole.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "tests/unit/model_equal.h"
#include "tests/unit/selection_fixture.h"

static struct model *answer(const struct selection_subject *subject,
                            const struct selection *selection) {
    struct error error = {""};
    struct model *model =
        selection_model(selection, subject->whole, subject->parts, NULL, NULL, &error);
    if (model == NULL) {
        fail_msg("%s", error.message);
    }
    return model;
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

static void everything_is_the_view(const struct selection_subject *subject,
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
    selection_each_view(everything_is_the_view);
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

static void make_the_whole(const struct selection_subject *subject, const struct selection *one,
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

static void halves_of_view(const struct selection_subject *subject,
                           const struct selection *selection) {
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
    high.only_freed = true; /* freed at any time */
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
    selection_each_view(halves_of_view);
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

static void open_wild(struct selection_subject *subject, uint64_t seed) {
    struct recording_build build = {0};
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    recording_build_tree(&build);
    for (uint32_t thread = 0; thread < 3; thread++) {
        add_wild(&build, seed * 3 + thread, thread);
    }
    add_wild(&build, seed, 1 << MEMTRACE_THREAD_BITS); /* more threads than there may be */
    selection_open_built(subject, &build);
}

/* Nothing but that it ends well; the sanitizers look on. */
static void wild_values(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct selection_subject subject;
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
        selection_close(&subject);
    }
}

/* ---- Where glibc put a block ---- */

/* One of each kind: of the main arena, with a mapping of its own, of another arena, a mapping that
 * a thread of another arena asked for. Of sizes that add up to different sums. */
static void open_placed(struct selection_subject *subject) {
    static const uint8_t flags[] = {0, MEMTRACE_ALLOC_MAPPED, MEMTRACE_ALLOC_ARENA,
                                    MEMTRACE_ALLOC_MAPPED | MEMTRACE_ALLOC_ARENA};
    static const uint64_t sizes[] = {100, 256 << 10, 300, 512 << 10};
    struct recording_build build = {0};
    struct event_encoder *encoder = event_encoder_new(0);
    assert_non_null(encoder);
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    recording_build_tree(&build);
    event_encoder_start(encoder, 1, 1);
    for (uint64_t i = 0; i < 4; i++) {
        const struct event event = {.kind = EVENT_ALLOC,
                                    .context = 4,
                                    .time_ns = 1000 * (i + 1),
                                    .block = {i + 1, 1},
                                    .address = 0x7f0000001000 + i * 0x100000,
                                    .size = sizes[i],
                                    .flags = flags[i]};
        assert_int_equal(event_encoder_add(encoder, &event), 0);
    }
    recording_build_encoded(&build, encoder, 1);
    event_encoder_free(encoder);
    selection_open_built(subject, &build);
}

static uint64_t bytes_in(const struct selection_subject *subject, enum selection_arena arena,
                         bool only_mapped) {
    struct selection selection = selection_all();
    struct model *model;
    uint64_t bytes;
    selection.arena = arena;
    selection.only_mapped = only_mapped;
    model = answer(subject, &selection);
    bytes = model->totals.total_bytes;
    model_free(model);
    return bytes;
}

static void arenas(void **state) {
    struct selection_subject subject;
    (void)state;
    open_placed(&subject);
    assert_int_equal(bytes_in(&subject, SELECTION_ANY_ARENA, false), 400 + (768 << 10));
    assert_int_equal(bytes_in(&subject, SELECTION_ANY_ARENA, true), 768 << 10);
    assert_int_equal(bytes_in(&subject, SELECTION_MAIN_ARENA, false), 100);
    assert_int_equal(bytes_in(&subject, SELECTION_OTHER_ARENA, false), 300 + (512 << 10));
    selection_close(&subject);
}

/* ---- Groups of blocks ---- */

/* Context 4 allocates 10 bytes in ticks 1 and 9 (the first is freed in tick 5), the last context
 * 300 bytes in ticks 2 and 3. */
static void open_groups(struct selection_subject *subject) {
    const uint64_t tick_ns = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    const struct event events[] = {
        {.kind = EVENT_ALLOC, .context = 4, .size = 10, .time_ns = tick_ns, .block = {1, 1}},
        {.kind = EVENT_ALLOC, .context = 35, .size = 300, .time_ns = 2 * tick_ns, .block = {2, 1}},
        {.kind = EVENT_ALLOC, .context = 35, .size = 300, .time_ns = 3 * tick_ns, .block = {3, 1}},
        {.kind = EVENT_FREE, .time_ns = 5 * tick_ns, .block = {1, 1}},
        {.kind = EVENT_ALLOC, .context = 4, .size = 10, .time_ns = 9 * tick_ns, .block = {4, 1}},
    };
    struct recording_build build = {0};
    struct event_encoder *encoder = event_encoder_new(0);
    assert_non_null(encoder);
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    recording_build_tree(&build);
    event_encoder_start(encoder, 1, 1);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        assert_int_equal(event_encoder_add(encoder, &events[i]), 0);
    }
    recording_build_encoded(&build, encoder, 1);
    event_encoder_free(encoder);
    selection_open_built(subject, &build);
}

static uint64_t bytes_of_groups(const struct selection_subject *subject,
                                struct selection *selection) {
    struct model *model;
    struct error error = {""};
    uint64_t bytes;
    assert_true(selection_asks_group_times(selection));
    assert_true(selection_asks_contexts(selection));
    assert_int_equal(selection_find_groups(selection, subject->whole, subject->parts, NULL, &error),
                     0);
    model = answer(subject, selection);
    bytes = model->totals.total_bytes;
    model_free(model);
    return bytes;
}

/* How long a context went on allocating, and when it held most: either is asked for alone. */
static void groups(void **state) {
    const uint64_t tick_ns = UINT64_C(1) << MEMTRACE_TICK_SHIFT;
    struct selection selection = selection_all();
    struct selection_subject subject;
    (void)state;
    open_groups(&subject);
    assert_false(selection_asks_group_times(&selection));
    selection.group_interval = (struct selection_range){0, 2 * tick_ns};
    assert_int_equal(bytes_of_groups(&subject, &selection), 600);
    selection = selection_all();
    selection.group_interval = (struct selection_range){3 * tick_ns, UINT64_MAX};
    assert_int_equal(bytes_of_groups(&subject, &selection), 20);
    selection = selection_all();
    selection.group_maximum = (struct selection_times){0, 2 * tick_ns};
    assert_int_equal(bytes_of_groups(&subject, &selection), 20);
    selection = selection_all();
    selection.group_maximum = (struct selection_times){2 * tick_ns, 4 * tick_ns};
    assert_int_equal(bytes_of_groups(&subject, &selection), 600);
    selection_close(&subject);
}

/* ---- What is asked of what ---- */

static void everything_is_a_copy(void **state) {
    struct selection_subject subject;
    struct selection all = selection_all();
    struct model *copy;
    (void)state;
    selection_open(&subject, &(struct recording_random){.seed = 3, .threads = 4});
    copy = answer(&subject, &all);
    assert_models_equal(copy, subject.whole);
    model_free(copy);
    selection_close(&subject);
}

static void profiles_know_no_blocks(void **state) {
    struct model model = {.node_count = 1, .to_ns = UINT64_MAX};
    struct timeorder_parts none = {NULL, 0};
    struct selection selection = selection_all();
    const struct lives_visitor visitor = {.end = NULL};
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
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_of_everything),
        cmocka_unit_test(halves),
        cmocka_unit_test(wild_values),
        cmocka_unit_test(arenas),
        cmocka_unit_test(groups),
        cmocka_unit_test(everything_is_a_copy),
        cmocka_unit_test(profiles_know_no_blocks),
        cmocka_unit_test(what_is_asked),
        cmocka_unit_test(wrong_patterns),
    };
    return cmocka_run_group_tests(tests, selection_make_file, selection_remove_file);
}
