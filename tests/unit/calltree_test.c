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

typedef int tree_function(struct calltree *tree, const struct report *report, enum metric metric);
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
    struct calltree tree;
    assert_int_equal(make(&tree, &report, metric), 0);
    return tree;
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
            calltree_free(&tree);
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

/* How many calls both have. */
static size_t compare_ids(const struct calltree *left, const struct calltree *right) {
    size_t common = 0;
    for (size_t i = 1; i < left->count; i++) {
        size_t found = calltree_find(right, left->calls[i].id);
        assert_int_equal(calltree_find(left, left->calls[i].id), i);
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
        assert_int_equal(calltree_find(&total, 0), 0);
        assert_int_equal(calltree_find(&total, 1), SIZE_MAX);
        assert_int_equal(compare_ids(&live, &total), live.count - 1);
        assert_int_equal(compare_ids(&part, &total), part.count - 1);
        calltree_free(&total);
        calltree_free(&live);
        calltree_free(&part);
    }
    model_free(view);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(costs_add_up),
                                       cmocka_unit_test(ids_are_the_same_everywhere)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
