/* SPDX-License-Identifier: MIT */
/*
 * query_test.c: analyze/query: passes end when nobody wants their rows any more, look at no more
 * events than they need, and can be interrupted. What queries answer is tested in tests/query.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/base/job.h"
#include "analyze/query/vtable.h"
#include "analyze/window/wholemodel.h"
#include "tests/unit/recording_builder.h"

#include <sys/mman.h>

enum { BLOCKS = 200, EVENTS = 600, ALLOCATIONS = BLOCKS * EVENTS / 2, SMALL = 100 };
static const uint64_t STEP_NS = UINT64_C(1) << MEMTRACE_TICK_SHIFT;

static char path[] = "/tmp/memtrace-query-XXXXXX";

/* ---- A recording: one block after the other is allocated and freed, one in a tick ---- */

static uint64_t born_ns(uint64_t number) {
    return number * STEP_NS;
}

static void add_block(struct recording_build *build, struct event_encoder *encoder,
                      uint64_t *number) {
    event_encoder_start(encoder, 2, *number + 1);
    for (int i = 0; i < EVENTS / 2; i++) {
        struct event alloc = {.kind = EVENT_ALLOC,
                              .time_ns = born_ns(++*number),
                              .context = 4 + (uint32_t)(*number % 8),
                              .size = *number % SMALL,
                              .block = {*number, 2}};
        struct event end = {.kind = EVENT_FREE, .time_ns = alloc.time_ns, .block = alloc.block};
        assert_int_equal(event_encoder_add(encoder, &alloc), 0);
        assert_int_equal(event_encoder_add(encoder, &end), 0);
    }
    recording_build_encoded(build, encoder, 1);
}

static void write_recording(void) {
    struct recording_build build = {0};
    struct event_encoder *encoder = event_encoder_new(0);
    uint64_t number = 0;
    assert_non_null(encoder);
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    recording_build_tree(&build);
    for (int i = 0; i < BLOCKS; i++) {
        add_block(&build, encoder, &number);
    }
    recording_build_index(&build);
    recording_build_write(build.bytes, build.size, path);
    event_encoder_free(encoder);
    recording_build_free(&build);
}

struct fixture {
    struct recording *recording;
    struct model *model;
    struct names *names;
    struct selection selection;
    struct query_source source;
    struct query *query;
};

static int open_session(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct error error;
    write_recording();
    fixture->recording = recording_open(path, &error);
    fixture->source.parts =
        (struct timeorder_parts){(const struct recording *const *)&fixture->recording, 1};
    fixture->model = model_replay(fixture->source.parts, NULL, &error);
    fixture->names = names_open(fixture->model, NULL, &error);
    fixture->selection = selection_all();
    fixture->source.whole = fixture->source.model = fixture->model;
    fixture->source.names = fixture->names;
    fixture->source.selection = &fixture->selection;
    fixture->query = query_open(&fixture->source);
    *state = fixture;
    return 0;
}

static int close_session(void **state) {
    struct fixture *fixture = *state;
    query_close(fixture->query);
    names_close(fixture->names);
    model_free(fixture->model);
    recording_close(fixture->recording);
    free(fixture);
    return 0;
}

/* ---- Asking ---- */

struct answer {
    struct query *query;
    int stop_after; /* rows; 0: never */
    bool interrupts;
    int rows;
    int ends;
    sqlite3_int64 value; /* of the first column of the last row */
};

static int begin(void *context, sqlite3_stmt *statement) {
    (void)context;
    return sqlite3_column_count(statement) == 0;
}

static int row(void *context, sqlite3_stmt *statement) {
    struct answer *answer = context;
    answer->value = sqlite3_column_int64(statement, 0);
    answer->rows++;
    if (answer->interrupts) {
        query_interrupt(answer->query);
    }
    return answer->rows == answer->stop_after;
}

static int end(void *context) {
    ((struct answer *)context)->ends++;
    return 0;
}

static int ask(struct fixture *fixture, const char *sql, struct answer *answer,
               struct error *error) {
    const struct query_sink sink = {begin, row, end, answer};
    answer->query = fixture->query;
    return query_run(fixture->query, sql, &sink, error);
}

static sqlite3_int64 number(struct fixture *fixture, const char *sql) {
    struct answer answer = {0};
    struct error error = {""};
    assert_int_equal(ask(fixture, sql, &answer, &error), 0);
    assert_int_equal(answer.rows, 1);
    assert_int_equal(answer.ends, 1);
    return answer.value;
}

/* What the cursor does not ask for is not read but for some batches. */
static void limit_ends_the_pass(void **state) {
    struct fixture *fixture = *state;
    number(fixture, "SELECT id FROM allocations LIMIT 1");
    assert_int_equal(query_work(fixture->query).passes, 1);
    assert_true(query_work(fixture->query).rows < ALLOCATIONS / 4);
    assert_int_equal(number(fixture, "SELECT count(*) FROM allocations"), ALLOCATIONS);
    assert_int_equal(query_work(fixture->query).passes, 2);
}

/* A row that SQLite would only throw away is not handed over. */
static void bounds_are_the_passes(void **state) {
    struct fixture *fixture = *state;
    unsigned long long rows;
    assert_int_equal(number(fixture, "SELECT count(*) FROM allocations WHERE size = 3"),
                     ALLOCATIONS / SMALL);
    assert_int_equal(query_work(fixture->query).rows, ALLOCATIONS / SMALL);
    assert_int_equal(number(fixture, "SELECT count(*) FROM allocations WHERE lifetime > 0"), 0);
    assert_int_equal(query_work(fixture->query).rows, ALLOCATIONS / SMALL);
    assert_int_equal(number(fixture, "SELECT count(*) FROM allocations WHERE +size = 3"),
                     ALLOCATIONS / SMALL);
    rows = query_work(fixture->query).rows;
    assert_int_equal(rows, ALLOCATIONS / SMALL + ALLOCATIONS);
    /* Nothing can be found: no pass. */
    assert_int_equal(
        number(fixture, "SELECT count(*) FROM allocations WHERE size < 5 AND size > 9"), 0);
    assert_int_equal(query_work(fixture->query).passes, 3);
}

static void until_bounds_what_is_decoded(void **state) {
    struct fixture *fixture = *state;
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM allocations WHERE born <= %llu",
             (unsigned long long)born_ns(1000));
    assert_int_equal(number(fixture, sql), 1000);
    snprintf(sql, sizeof sql, "SELECT count(freed) FROM allocations WHERE born <= %llu",
             (unsigned long long)born_ns(1000));
    assert_int_equal(number(fixture, sql), 1000);
}

static int count_life(void *context, const struct life *life) {
    (void)life;
    ++*(int *)context;
    return 0;
}

/* replay_options.until_ns: all before it, and not much behind it. */
static void a_pass_ends_at_a_time(void **state) {
    struct fixture *fixture = *state;
    int seen = 0;
    const struct lives_visitor visitor = {.begin = count_life, .context = &seen};
    const struct replay_options options = {.until_ns = born_ns(1001)};
    struct error error;
    assert_int_equal(lives_visit(fixture->source.parts, fixture->model, &visitor, &options, &error),
                     0);
    assert_true(seen >= 1000);
    assert_true(seen < 2000);
}

/* replay_options.cancel */
static void a_pass_is_cancelled(void **state) {
    struct fixture *fixture = *state;
    const atomic_bool cancel = true;
    const struct lives_visitor visitor = {0};
    const struct replay_options options = {.cancel = &cancel};
    struct error error;
    assert_int_equal(lives_visit(fixture->source.parts, fixture->model, &visitor, &options, &error),
                     REPLAY_CANCELLED);
}

static void interrupted(void **state) {
    struct fixture *fixture = *state;
    struct answer answer = {.interrupts = true};
    struct error error = {""};
    assert_int_equal(ask(fixture, "SELECT id FROM allocations", &answer, &error), -1);
    assert_string_equal(error.message, "interrupted");
    assert_int_equal(answer.rows, 1);
    assert_int_equal(answer.ends, 1);
    /* What is asked before query_resume() ends, too, even where it would not end by itself. */
    answer = (struct answer){0};
    assert_int_equal(ask(fixture,
                         "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "
                         "SELECT sum(n) FROM c",
                         &answer, &error),
                     -1);
    query_resume(fixture->query);
    assert_int_equal(number(fixture, "SELECT count(*) FROM allocations"), ALLOCATIONS);
}

static void a_sink_has_enough(void **state) {
    struct fixture *fixture = *state;
    struct answer answer = {.stop_after = 3};
    struct error error;
    assert_int_equal(ask(fixture, "SELECT id FROM allocations; SELECT 1", &answer, &error),
                     QUERY_STOPPED);
    assert_int_equal(answer.rows, 3);
    assert_int_equal(answer.ends, 1);
}

static void errors_say_where(void **state) {
    struct fixture *fixture = *state;
    struct answer answer = {0};
    struct error error;
    assert_int_equal(ask(fixture, "SELECT 1;\nSELECT\nsizee FROM allocations", &answer, &error),
                     -1);
    assert_string_equal(error.message,
                        "no such column: sizee, at character 18: sizee FROM allocations");
    assert_int_equal(answer.rows, 1);
}

/* ---- Queues ---- */

static void produce_numbers(struct rowqueue *queue, void *argument) {
    const uint64_t *end = argument;
    for (uint64_t i = 0; i < *end; i++) {
        if (rowqueue_put(queue, &i) != 0) {
            return;
        }
    }
    if (*end % 2 == 1) {
        job_fail("%s", job_text("odd: %d", 5));
    }
}

static void produce_nothing(struct rowqueue *queue, void *argument) {
    (void)argument;
    while (!atomic_load(rowqueue_cancel(queue))) {
    }
}

static void queues(void **state) {
    static const uint64_t ends[] = {0, 1, 511, 512, 513, 100000};
    atomic_bool is_interrupted = false;
    struct rowqueue *queue;
    const void *got;
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        uint64_t end_at = ends[i];
        queue = rowqueue_start(sizeof(uint64_t), produce_numbers, &end_at);
        for (uint64_t j = 0; j < end_at; j++) {
            assert_int_equal(rowqueue_next(queue, &is_interrupted, &got), 1);
            assert_int_equal(*(const uint64_t *)got, j);
        }
        assert_int_equal(rowqueue_next(queue, &is_interrupted, &got), 0);
        assert_int_equal(rowqueue_next(queue, &is_interrupted, &got), 0);
        if (end_at % 2 == 1) {
            assert_string_equal(rowqueue_error(queue)->message, "odd: 5");
        } else {
            assert_null(rowqueue_error(queue));
        }
        rowqueue_close(queue);
    }
    is_interrupted = true;
    queue = rowqueue_start(1, produce_nothing, NULL);
    assert_int_equal(rowqueue_next(queue, &is_interrupted, &got), -1);
    rowqueue_close(queue);
    rowqueue_close(NULL);
}

/* Each row has 4,000 bytes that are not zeros: far more than SQLite's caches of 16 MiB. */
#define ROWS                                                                                       \
    "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 12000) SELECT"          \
    " printf('%04000d', n * 7919 % 10007) t FROM c)"
static const char sorting[] =
    "SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY t) n FROM " ROWS ")";
static const char keeping[] =
    "CREATE TEMP TABLE k AS SELECT * FROM " ROWS ";SELECT count(*) FROM k";

static void temporary_files_have_a_limit(void **state) {
    const char *const statements[] = {sorting, keeping};
    struct fixture *fixture = *state;
    struct answer answer = {0};
    struct error error;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(fixture, statements[i], &answer, &error), 0);
        assert_int_equal(answer.value, 12000);
    }
    assert_int_equal(ask(fixture, "DROP TABLE k", &answer, &error), 0);
    spill_limit(&fixture->query->spill, 8 << 20);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(fixture, statements[i], &answer, &error), -1);
        assert_non_null(
            strstr(error.message, "more than 8.0 MiB would go to temporary files in /"));
    }
    assert_int_equal(ask(fixture, "SELECT 5", &answer, &error), 0);
    assert_int_equal(answer.value, 5);
    query_bound(fixture->query, 1 << 20, 1 << 20);
    assert_int_equal(ask(fixture, sorting, &answer, &error), -1);
    assert_non_null(strstr(error.message, "more than 1.0 MiB would go"));
    assert_int_equal(ask(fixture, "CREATE TEMP TABLE l AS SELECT 1", &answer, &error), -1);
    assert_non_null(strstr(error.message, "not authorized"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(temporary_files_have_a_limit, open_session, close_session),
        cmocka_unit_test_setup_teardown(limit_ends_the_pass, open_session, close_session),
        cmocka_unit_test_setup_teardown(bounds_are_the_passes, open_session, close_session),
        cmocka_unit_test_setup_teardown(until_bounds_what_is_decoded, open_session, close_session),
        cmocka_unit_test_setup_teardown(a_pass_ends_at_a_time, open_session, close_session),
        cmocka_unit_test_setup_teardown(a_pass_is_cancelled, open_session, close_session),
        cmocka_unit_test_setup_teardown(interrupted, open_session, close_session),
        cmocka_unit_test_setup_teardown(a_sink_has_enough, open_session, close_session),
        cmocka_unit_test_setup_teardown(errors_say_where, open_session, close_session),
        cmocka_unit_test(queues),
    };
    int failed;
    int fd = mkstemp(path);
    if (fd < 0) {
        return 1;
    }
    close(fd);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
