/* SPDX-License-Identifier: MIT */
/*
 * answer_test.c: ask/answer: reports of single blocks without a command line,
 * against the totals of the replay; and what is refused.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/base/job.h"
#include "analyze/rows/table.h"
#include "ask/answer.h"
#include "tests/unit/profile_builder.h"
#include "tests/unit/selection_fixture.h"

#include <yajl/yajl_tree.h>

static const struct answer_progress quiet;

static void open_recording(struct answer *answer, const struct question *question) {
    const struct recording_random options = {.seed = 3, .threads = 3, .is_precise = true};
    struct recording_build build = {0};
    recording_random(&build, &options);
    recording_build_write(build.bytes, build.size, selection_path);
    recording_build_free(&build);
    answer_open(answer, selection_path, question, &quiet);
}

/* The output of a report as JSON. The caller frees the tree. */
static yajl_val written(const struct report *made, void (*write)(const struct report *report)) {
    struct report report = *made;
    struct table_document document;
    char *text = NULL;
    size_t size = 0;
    char message[256];
    yajl_val root;
    report.out = open_memstream(&text, &size);
    table_document_open(&document, &report);
    report.document = &document;
    write(&report);
    table_document_close(&document, &report);
    fclose(report.out);
    root = yajl_tree_parse(text, message, sizeof message);
    assert_non_null(root);
    free(text);
    return root;
}

static yajl_val at(yajl_val value, const char *name) {
    const char *path[] = {name, NULL};
    yajl_val found = yajl_tree_get(value, path, yajl_t_any);
    assert_non_null(found);
    return found;
}

/* Of all rows of one of the tables. */
static uint64_t sum(yajl_val root, size_t table, const char *name) {
    yajl_val rows = at(YAJL_GET_ARRAY(at(root, "reports"))->values[table], "rows");
    uint64_t all = 0;
    for (size_t i = 0; i < YAJL_GET_ARRAY(rows)->len; i++) {
        all += (uint64_t)YAJL_GET_INTEGER(at(YAJL_GET_ARRAY(rows)->values[i], name));
    }
    return all;
}

static void sizes(void **state) {
    const struct question question = {0};
    const struct report_wish wish = {.options.format = REPORT_JSON, .shows[SHOW_SIZES] = true};
    struct answer answer;
    struct report *made;
    const struct model_totals *totals;
    yajl_val root;
    (void)state;
    open_recording(&answer, &question);
    totals = &answer.whole->totals;
    assert_true(totals->allocations > 100);
    made = reportmaking_open(&answer, &wish, &quiet.replay);
    root = written(made, report_sizes);
    assert_int_equal(sum(root, 0, "allocations"), totals->allocations);
    assert_int_equal(sum(root, 0, "total_bytes"), totals->total_bytes);
    assert_int_equal(sum(root, 0, "live_blocks"), totals->live_blocks);
    assert_int_equal(sum(root, 1, "allocations"), totals->allocations);
    yajl_tree_free(root);
}

/* The usual number of blocks, or as many as somebody said; lifetimes of all that were freed. */
static void blocks_and_lifetimes(void **state) {
    const struct question question = {0};
    struct report_wish wish = {.options.format = REPORT_JSON,
                               .shows = {[SHOW_BLOCKS] = true, [SHOW_LIFETIMES] = true}};
    struct answer answer;
    struct report *made;
    yajl_val root;
    (void)state;
    open_recording(&answer, &question);
    made = reportmaking_open(&answer, &wish, &quiet.replay);
    assert_int_equal(made->detail->block_count, 20);
    root = written(made, report_lifetimes);
    assert_int_equal(sum(root, 0, "freed"), answer.whole->totals.frees);
    assert_int_equal(sum(root, 1, "freed"), answer.whole->totals.frees);
    yajl_tree_free(root);
    wish.limit_given = true;
    wish.options.limit = 3;
    made = reportmaking_open(&answer, &wish, &quiet.replay);
    assert_int_equal(made->detail->block_count, 3);
    assert_true(made->detail->blocks[0].size >= made->detail->blocks[2].size);
}

/* Where nobody says when, it is of the moment with most holes. */
static void fragmentation(void **state) {
    const struct question question = {0};
    const struct report_wish wish = {.options.format = REPORT_JSON,
                                     .shows[SHOW_FRAGMENTATION] = true};
    struct answer answer;
    struct report *made;
    yajl_val root;
    (void)state;
    open_recording(&answer, &question);
    made = reportmaking_open(&answer, &wish, &quiet.replay);
    assert_non_null(made->holes);
    root = written(made, report_fragmentation);
    assert_int_equal(sum(root, 0, "live_bytes"), made->holes->model->totals.live_bytes);
    yajl_tree_free(root);
}

struct refusal {
    const struct answer *answer;
    const struct report_wish *wish;
};

static void ask_for(void *what) {
    const struct refusal *refusal = what;
    reportmaking_open(refusal->answer, refusal->wish, &quiet.replay);
}

static void expect_refused(struct answer *answer, const struct report_wish *wish, const char *why) {
    struct refusal refusal = {answer, wish};
    struct error error = {""};
    assert_int_equal(job_run(ask_for, &refusal, NULL, &error), -1);
    if (strstr(error.message, why) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", error.message, why);
    }
}

static void refused(void **state) {
    const struct question question = {0};
    const struct report_wish too_many = {
        .shows[SHOW_BLOCKS] = true, .limit_given = true, .options.limit = 0};
    const struct report_wish no_time = {.metrics[METRIC_SHUTDOWN] = true, .shutdown_at = "soon"};
    const struct report_wish no_sizes = {.shows[SHOW_SIZES] = true};
    const struct report_wish no_marks = {.shows[SHOW_MARKS] = true};
    const struct report_wish lifetimes = {.shows[SHOW_LIFETIMES] = true};
    struct builder *builder = builder_new();
    struct answer answer;
    struct report *made;
    (void)state;
    open_recording(&answer, &question);
    expect_refused(&answer, &too_many, "--show-blocks takes a --limit of 1 to 10000000");
    expect_refused(&answer, &no_time, "--shutdown-at: ");
    recording_build_write(builder->bytes, builder_size(builder), selection_path);
    free(builder);
    answer_open(&answer, selection_path, &question, &quiet);
    expect_refused(&answer, &no_sizes, "--show-sizes needs single blocks");
    expect_refused(&answer, &no_marks, "which has no marks");
    made =
        reportmaking_open(&answer, &lifetimes, &quiet.replay); /* a profile tells them in steps */
    assert_null(made->detail);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes),
                                       cmocka_unit_test(blocks_and_lifetimes),
                                       cmocka_unit_test(fragmentation), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, selection_make_file, selection_remove_file);
}
