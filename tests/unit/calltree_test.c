/* SPDX-License-Identifier: MIT */
/* calltree_test.c: analyze/report/calltree: costs add up, top-down and bottom-up and for any cost,
 * and a call has the same id in the trees of all costs and windows. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/report/calltree.h"
#include "analyze/window/view.h"
#include "analyze/window/wholemodel.h"
#include "tests/unit/recording_random.h"

static char path[] = "/tmp/memtrace-calltree-XXXXXX";
static struct recording *recording;
static struct timeorder_parts parts;
static struct model *whole;
static struct names *names;

typedef struct calltree tree_function(const struct report *report, enum metric metric);
static tree_function *const kinds[] = {calltree_top_down, calltree_bottom_up};

static int open_all(void **state) {
    const struct recording_random options = {.seed = 3, .threads = 3};
    struct recording_build build = {0};
    struct error error = {""};
    (void)state;
    close(mkstemp(path));
    recording_random(&build, &options);
    recording_build_write(build.bytes, build.size, path);
    recording_build_free(&build);
    recording = recording_open(path, &error);
    parts = (struct timeorder_parts){(const struct recording *const *)&recording, 1};
    whole = model_replay(parts, NULL, &error);
    names = names_open(whole, NULL, &error);
    return names != NULL ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    names_close(names);
    model_free(whole);
    recording_close(recording);
    return unlink(path);
}

static struct calltree tree_of(tree_function *make, const struct model *model, enum metric metric) {
    const struct report report = {
        .model = model, .names = names, .options = {.all_frames = true, .by_line = true}};
    return make(&report, metric);
}

static uint64_t total_of(const struct model *model, enum metric metric) {
    uint64_t total = 0;
    for (size_t i = 0; i < model->context_count; i++) {
        total += model->contexts[i].class == MODEL_HEAP
                     ? metric_cost(metric, &model->contexts[i]).main
                     : 0;
    }
    return total;
}

static void check_sums(const struct calltree *tree) {
    uint64_t *sums = calloc(tree->count, sizeof *sums);
    assert_non_null(sums);
    for (size_t i = tree->count; i-- > 0;) {
        const struct call *call = &tree->calls[i];
        assert_true(i == 0 || call->parent < i);
        assert_int_equal(call->cost.main, call->self.main + sums[i]);
        sums[i != 0 ? call->parent : 0] += i != 0 ? call->cost.main : 0;
    }
    free(sums);
}

static void costs_add_up(void **state) {
    (void)state;
    for (size_t kind = 0; kind < 2; kind++) {
        for (enum metric metric = 0; metric <= METRIC_TEMPORARY; metric++) {
            struct calltree tree = tree_of(kinds[kind], whole, metric);
            assert_true(tree.count > 1);
            assert_int_equal(tree.calls[0].cost.main, total_of(whole, metric));
            check_sums(&tree);
        }
    }
}

/* Frame by frame, from here to the root. */
static bool are_alike(const struct calltree *left, size_t a, const struct calltree *right,
                      size_t b) {
    while (a != 0 && b != 0) {
        if (left->calls[a].frame->place_key != right->calls[b].frame->place_key) {
            return false;
        }
        a = left->calls[a].parent;
        b = right->calls[b].parent;
    }
    return a == b;
}

/* The index of the call with this id; SIZE_MAX: there is none. */
static size_t find_call(const struct calltree *tree, uint64_t id) {
    size_t at = 0;
    while (at < tree->count && tree->calls[at].id != id) {
        at++;
    }
    return at < tree->count ? at : SIZE_MAX;
}

/* How many calls both have. */
static size_t compare_ids(const struct calltree *left, const struct calltree *right) {
    size_t common = 0;
    for (size_t i = 1; i < left->count; i++) {
        size_t found = find_call(right, left->calls[i].id);
        assert_int_equal(find_call(left, left->calls[i].id), i);
        if (found != SIZE_MAX) {
            assert_true(are_alike(left, i, right, found));
            common++;
        }
    }
    return common;
}

static void ids_are_the_same_everywhere(void **state) {
    struct error error = {""};
    struct model *view =
        model_view(whole, parts, whole->now_ns / 3, whole->now_ns / 2, NULL, &error);
    (void)state;
    assert_non_null(view);
    for (size_t kind = 0; kind < 2; kind++) {
        struct calltree total = tree_of(kinds[kind], whole, METRIC_CUMULATIVE);
        struct calltree live = tree_of(kinds[kind], whole, METRIC_LEAKED);
        struct calltree part = tree_of(kinds[kind], view, METRIC_CUMULATIVE);
        assert_int_equal(find_call(&total, 0), 0);
        assert_int_equal(find_call(&total, 1), SIZE_MAX);
        assert_int_equal(compare_ids(&live, &total), live.count - 1);
        assert_int_equal(compare_ids(&part, &total), part.count - 1);
    }
    model_free(view);
}

/* ---- Bottom-up, of functions that call themselves now and then, and are inlined ---- */

static int by_frame(const void *left, const void *right) {
    const struct framename *a = left;
    const struct framename *b = right;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

/* All frames in four functions; each third one is two frames. */
static struct framenames few_functions(void) {
    static const char *const functions[] = {"a", "b", "c", "main"};
    struct framenames given = {.items = calloc(2 * whole->node_count, sizeof *given.items)};
    assert_non_null(given.items);
    for (size_t i = 1; i < whole->node_count; i++) {
        uint64_t frame = whole->nodes[i].frame;
        for (size_t depth = 0; depth < (frame / 16 % 3 == 0 ? 2 : 1); depth++) {
            given.items[given.count++] =
                (struct framename){.frame = frame,
                                   .function = functions[(frame / 16 + depth) % 4],
                                   .line = (uint32_t)(frame / 16 % 7)};
        }
    }
    qsort(given.items, given.count, sizeof *given.items, by_frame);
    return given;
}

static struct framenames given;
static struct names *few;

static int open_few(void **state) {
    struct names_options options = {.given = &given};
    struct error error = {""};
    if (open_all(state) != 0) {
        return -1;
    }
    given = few_functions();
    few = names_open(whole, &options, &error);
    return few != NULL ? 0 : -1;
}

static int close_few(void **state) {
    names_close(few);
    free(given.items);
    return close_all(state);
}

/* What each call bears, path by path. */
struct tally {
    struct call *calls; /* id and cost alone */
    size_t count;
};

static void tally_add(struct tally *tally, uint64_t id, struct cost cost) {
    size_t at = 0;
    while (at < tally->count && tally->calls[at].id != id) {
        at++;
    }
    if (at == tally->count) {
        tally->calls = realloc(tally->calls, (at + 1) * sizeof *tally->calls);
        assert_non_null(tally->calls);
        tally->calls[tally->count++] = (struct call){.id = id};
    }
    metric_add(&tally->calls[at].cost, cost);
}

static struct tally tally_paths(const struct report *report, enum metric metric) {
    static const struct names_frame unknown = {.module = ""};
    struct tally tally = {0};
    for (size_t i = 0; i < whole->context_count; i++) {
        struct cost cost = metric_cost(metric, &whole->contexts[i]);
        struct call at = {0};
        struct pathwalk walk;
        if (whole->contexts[i].class != MODEL_HEAP || cost.main == 0) {
            continue;
        }
        walk = pathwalk(report, whole->contexts[i].path);
        walk.frame = walk.frame != NULL ? walk.frame : &unknown;
        for (; walk.frame != NULL; pathwalk_next(&walk)) {
            bool recurs = at.frame != NULL && !report->options.all_frames &&
                          calltree_key(report, at.frame) == calltree_key(report, walk.frame);
            if (!recurs) {
                at.id = calltree_id(report, &at, walk.frame);
                tally_add(&tally, at.id, cost);
            }
            at.frame = walk.frame;
        }
    }
    return tally;
}

static void bottom_up_is_what_paths_add_up_to(void **state) {
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const struct report report = {
            .model = whole,
            .names = few,
            .options = {.format = REPORT_JSON, .all_frames = i & 1, .by_line = (i & 2) != 0}};
        struct tally tally = tally_paths(&report, METRIC_ALLOCATIONS);
        struct calltree tree = calltree_bottom_up(&report, METRIC_ALLOCATIONS);
        assert_int_equal(tree.count - 1, tally.count);
        for (size_t at = 0; at < tally.count; at++) {
            size_t found = find_call(&tree, tally.calls[at].id);
            assert_int_not_equal(found, SIZE_MAX);
            assert_int_equal(tree.calls[found].cost.main, tally.calls[at].cost.main);
            assert_int_equal(tree.calls[found].cost.side, tally.calls[at].cost.side);
        }
        free(tally.calls);
    }
}

/* The dearest sibling first; what is cheap is there, and what lies behind it is not. */
static void cheap_branches_are_not_expanded(void **state) {
    struct report report = {.model = whole, .names = few, .options = {.format = REPORT_JSON}};
    struct calltree all;
    struct calltree cut;
    uint64_t least;
    size_t expanded = 0;
    (void)state;
    all = calltree_bottom_up(&report, METRIC_CUMULATIVE);
    report.options.min_percent = 3.5;
    cut = calltree_bottom_up(&report, METRIC_CUMULATIVE);
    least = (uint64_t)((double)all.calls[0].cost.main / 100.0 * 3.5);
    for (size_t i = 1; i < all.count; i++) {
        const struct call *call = &all.calls[i];
        bool is_there = call->parent == 0 || all.calls[call->parent].cost.main >= least;
        size_t found = find_call(&cut, call->id);
        assert_int_equal(found != SIZE_MAX, is_there);
        assert_true(call->next == 0 || call->cost.main >= all.calls[call->next].cost.main);
        if (is_there) {
            assert_int_equal(cut.calls[found].cost.main, call->cost.main);
            expanded += cut.calls[found].first_child != 0;
        }
    }
    assert_true(expanded > 0 && cut.count < all.count);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(costs_add_up),
                                       cmocka_unit_test(ids_are_the_same_everywhere),
                                       cmocka_unit_test(bottom_up_is_what_paths_add_up_to),
                                       cmocka_unit_test(cheap_branches_are_not_expanded)};
    return cmocka_run_group_tests(tests, open_few, close_few);
}
