/* SPDX-License-Identifier: MIT */
/*
 * apiquery.c: SQL over a view: its tables, and the rows of a statement.
 *
 * Each question has a session of its own (query.h), which can write nothing; a thread beside it
 * ends it when whoever asked is gone or it takes too long. Memory: SQLite's caches, and what is
 * answered, which is bounded by rows and bytes.
 */
#include "web/server/apidetail.h"
#include "web/server/apireport.h"

#include "analyze/base/job.h"
#include "analyze/base/timedwait.h"
#include "analyze/query/query.h"
#include "analyze/read/jsontree.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROWS_MOST = 100000,
    BYTES_MOST = 64 << 20, /* of an answer */
    TEXT_MOST = 16 << 20,  /* of one value */
    SPILL_MOST = 1 << 30,  /* of temporary files, a question */
    SECONDS_MOST = 120,
    LOOK_MS = 10
};

/* ---- The tables ---- */

static void write_table(struct jsonwriter *json, const struct rows *rows) {
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "name", rows->name);
    jsonwriter_string(json, "about", rows->about);
    jsonwriter_array(json, "columns");
    for (size_t i = 0; i < rows->column_count && rows->columns[i].sql != NULL; i++) {
        jsonwriter_map(json, NULL);
        jsonwriter_string(json, "name", rows->columns[i].sql);
        jsonwriter_string(json, "type", query_type(&rows->columns[i]));
        jsonwriter_string(json, "about", rows->columns[i].about);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}

int api_schema(struct api_call *call, struct error *error) {
    const struct rows *rows;
    (void)error;
    jsonwriter_map(call->json, NULL);
    jsonwriter_array(call->json, "tables");
    for (size_t i = 0; (rows = query_table(i)) != NULL; i++) {
        write_table(call->json, rows);
    }
    jsonwriter_end_array(call->json);
    jsonwriter_end_map(call->json);
    api_command(call, "query --schema");
    return 0;
}

/* ---- What is asked ---- */

struct asked {
    yajl_val body;
    const char *sql;
    size_t limit;
    bool only_plan;
};

static int read_limit(struct api_call *call, yajl_val value, struct asked *asked,
                      struct error *error) {
    if (value == NULL) {
        asked->limit = ROWS_MOST;
        return 0;
    }
    if (!YAJL_IS_INTEGER(value) || YAJL_GET_INTEGER(value) < 1 ||
        YAJL_GET_INTEGER(value) > ROWS_MOST) {
        return api_refuse(call, 400, error, "limit is a number from 1 to %d", ROWS_MOST);
    }
    asked->limit = (size_t)YAJL_GET_INTEGER(value);
    return 0;
}

static int check_members(struct api_call *call, yajl_val body, struct error *error) {
    for (size_t i = 0; i < YAJL_GET_OBJECT(body)->len; i++) {
        const char *key = YAJL_GET_OBJECT(body)->keys[i];
        if (strcmp(key, "sql") != 0 && strcmp(key, "limit") != 0 && strcmp(key, "plan") != 0) {
            return api_refuse(call, 400, error, "there is no member '%s' here", key);
        }
    }
    return 0;
}

/* The caller frees asked->body in any case. */
static int read_body(struct api_call *call, struct asked *asked, struct error *error) {
    static const char *sql[] = {"sql", NULL};
    static const char *limit[] = {"limit", NULL};
    static const char *plan[] = {"plan", NULL};
    yajl_val value;
    *asked = (struct asked){0};
    asked->body = call->body != NULL ? jsontree_parse(call->body) : NULL;
    if (!YAJL_IS_OBJECT(asked->body)) {
        return api_refuse(call, 400, error, "a JSON object with \"sql\" is needed");
    }
    asked->sql = YAJL_GET_STRING(yajl_tree_get(asked->body, sql, yajl_t_string));
    if (asked->sql == NULL) {
        return api_refuse(call, 400, error, "\"sql\" is missing, or no text");
    }
    value = yajl_tree_get(asked->body, plan, yajl_t_any);
    if (value != NULL && !YAJL_IS_TRUE(value) && !YAJL_IS_FALSE(value)) {
        return api_refuse(call, 400, error, "plan is true or false");
    }
    asked->only_plan = YAJL_IS_TRUE(value);
    return check_members(call, asked->body, error) != 0
               ? -1
               : read_limit(call, yajl_tree_get(asked->body, limit, yajl_t_any), asked, error);
}

/* ---- Whoever ends it ---- */

struct guard {
    struct query *query;
    const char *sql; /* what is run */
    const struct query_sink *sink;
    struct error *error;
    int result;
    const atomic_bool *cancel;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct timespec start;
    bool is_over;  /* the query came to its end */
    bool was_long; /* it was ended, since it took too long */
};

static struct timespec now_monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now;
}

static void *watch(void *context) {
    struct guard *guard = context;
    pthread_mutex_lock(&guard->lock);
    while (!guard->is_over) {
        struct timespec now = now_monotonic();
        struct timespec until = timedwait_until(LOOK_MS);
        guard->was_long |= now.tv_sec - guard->start.tv_sec >= SECONDS_MOST;
        if (guard->was_long || (guard->cancel != NULL && atomic_load(guard->cancel))) {
            query_interrupt(guard->query);
        }
        pthread_cond_timedwait(&guard->changed, &guard->lock, &until);
    }
    pthread_mutex_unlock(&guard->lock);
    return NULL;
}

static int guard_start(struct guard *guard) {
    pthread_mutex_init(&guard->lock, NULL);
    timedwait_init(&guard->changed);
    return pthread_create(&guard->thread, NULL, watch, guard) == 0 ? 0 : -1;
}

static void guard_end(void *what) {
    struct guard *guard = what;
    pthread_mutex_lock(&guard->lock);
    guard->is_over = true;
    pthread_cond_signal(&guard->changed);
    pthread_mutex_unlock(&guard->lock);
    pthread_join(guard->thread, NULL);
    pthread_cond_destroy(&guard->changed);
    pthread_mutex_destroy(&guard->lock);
}

/* ---- The rows ---- */

/* The rows of the last statement that has some; and its plan. */
struct answering {
    struct apireport taken;
    struct table_sink sink;
    struct statement_writer writer;
    struct query_sink inner; /* statement_sink() */
    FILE *plan;              /* NULL: the rows are wanted */
    size_t limit;
    size_t bytes;
    bool is_truncated;
};

static int on_begin(void *context, sqlite3_stmt *statement) {
    struct answering *answering = context;
    if (answering->plan != NULL) {
        return 0;
    }
    apireport_free(&answering->taken);
    answering->bytes = 0;
    answering->is_truncated = false;
    return answering->inner.begin(&answering->writer, statement);
}

/* A line of EXPLAIN QUERY PLAN: id, parent, unused, text. */
static int put_plan(FILE *out, sqlite3_stmt *statement) {
    fprintf(out, "%s%s\n", sqlite3_column_int(statement, 1) != 0 ? "  " : "",
            (const char *)sqlite3_column_text(statement, 3));
    return 0;
}

static int on_row(void *context, sqlite3_stmt *statement) {
    struct answering *answering = context;
    const struct apireport *taken = &answering->taken;
    if (answering->plan != NULL) {
        return put_plan(answering->plan, statement);
    }
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        answering->bytes += (size_t)sqlite3_column_bytes(statement, i) + sizeof(struct table_cell);
    }
    if (answering->bytes > BYTES_MOST ||
        (taken->count != 0 && taken->tables[taken->count - 1].rows == answering->limit)) {
        answering->is_truncated = true;
        return 1;
    }
    return answering->inner.row(&answering->writer, statement) != 0 || taken->out_of_memory;
}

static int on_end(void *context) {
    struct answering *answering = context;
    return answering->plan != NULL ? 1 /* the rest of the text is not run */
                                   : answering->inner.end(&answering->writer);
}

static void run_guarded(void *what) {
    struct guard *guard = what;
    guard->result = query_run(guard->query, guard->sql, guard->sink, guard->error);
}

static int run(struct api_call *call, struct query *query, const char *sql,
               struct answering *answering, struct error *error) {
    const struct query_sink sink = {
        .begin = on_begin, .row = on_row, .end = on_end, .context = answering};
    struct guard guard = {.query = query,
                          .sql = sql,
                          .sink = &sink,
                          .error = error,
                          .cancel = call->replay.cancel,
                          .start = now_monotonic()};
    int result;
    if (guard_start(&guard) != 0) {
        return error_set(error, "no thread for the query");
    }
    job_finally(run_guarded, guard_end, &guard);
    result = guard.result;
    if (guard.was_long) {
        return api_refuse(call, 503, error,
                          "the query was ended after %d s: narrow it, or ask `memtrace query`",
                          SECONDS_MOST);
    }
    if (result < 0) {
        call->status = replay_is_cancelled(&call->replay) ? 503 : 400;
        return -1;
    }
    return answering->taken.out_of_memory ||
                   (result == QUERY_STOPPED && answering->plan == NULL && !answering->is_truncated)
               ? error_set(error, "out of memory")
               : 0;
}

/* The text; the caller frees it. NULL: error is set. */
static char *explain(struct api_call *call, struct query *query, const char *sql,
                     struct error *error) {
    struct answering answering = {0};
    char *text = NULL;
    char *plan = NULL;
    size_t size = 0;
    int result = -1;
    answering.plan = open_memstream(&plan, &size);
    if (answering.plan == NULL || asprintf(&text, "EXPLAIN QUERY PLAN %s", sql) < 0) {
        text = NULL;
        error_set(error, "out of memory");
    } else {
        result = run(call, query, text, &answering, error);
    }
    if (answering.plan != NULL) {
        fclose(answering.plan);
    }
    free(text);
    if (result != 0) {
        free(plan);
        plan = NULL;
    }
    return plan;
}

/* ---- The answer ---- */

static int write_rows(struct api_call *call, const struct answering *answering, const char *plan,
                      struct error *error) {
    static const struct apireport_table nothing = {0};
    const struct apireport *taken = &answering->taken;
    struct apitable table;
    apireport_begin(call, taken->count != 0 ? &taken->tables[taken->count - 1] : &nothing, &table);
    if (plan != NULL) {
        jsonwriter_string(call->json, "plan", plan);
    }
    jsonwriter_bool(call->json, "truncated", answering->is_truncated);
    return apitable_end(&table, error);
}

static int answer_asked(struct api_call *call, struct query *query, const struct asked *asked,
                        struct error *error) {
    struct answering answering = {.limit = asked->limit};
    char *plan = NULL;
    int result = 0;
    answering.sink = apireport_sink(&answering.taken);
    answering.writer.report =
        (struct report){.out = call->out, .options.format = REPORT_SINK, .sink = &answering.sink};
    answering.inner = statement_sink(&answering.writer);
    if (asked->only_plan) {
        plan = explain(call, query, asked->sql, error);
        result = plan != NULL ? 0 : -1;
    } else {
        result = run(call, query, asked->sql, &answering, error);
    }
    if (result == 0) {
        result = write_rows(call, &answering, plan, error);
    }
    free(plan);
    apireport_free(&answering.taken);
    return result;
}

/* Each table of a join has a pass, and a thread, of its own: one after the other tells how far it
 * is. */
struct telling {
    pthread_mutex_t lock;
    const struct replay_options *to;
};

static void tell(void *context, uint64_t done, uint64_t total) {
    struct telling *telling = context;
    pthread_mutex_lock(&telling->lock);
    telling->to->progress(telling->to->context, done, total);
    pthread_mutex_unlock(&telling->lock);
}

static int answer_query(struct api_call *call, const struct asked *asked, struct error *error) {
    const struct answer *view = call->view;
    struct telling telling = {PTHREAD_MUTEX_INITIALIZER, &call->replay};
    const struct replay_options replay = {.progress = call->replay.progress != NULL ? tell : NULL,
                                          .context = &telling};
    const struct query_source source = {.whole = view->whole,
                                        .model = view->model,
                                        .selection = view->selection,
                                        .names = view->names,
                                        .parts = view->source->parts,
                                        .run = view->source->run,
                                        .replay = &replay,
                                        .has_full_names = call->report.options.full_names};
    struct query *query = query_open(&source);
    int result;
    query_bound(query, TEXT_MOST, SPILL_MOST);
    api_command(call, "query");
    call->told.operand = job_string(asked->sql);
    api_sql(call, "%s", asked->sql);
    result = answer_asked(call, query, asked, error);
    call->told.via = query_work(query).passes != 0 ? API_VIA_PASS : call->told.via;
    query_close(query);
    return result;
}

int api_query(struct api_call *call, struct error *error) {
    struct asked asked;
    int result = read_body(call, &asked, error);
    if (result == 0) {
        result = answer_query(call, &asked, error);
    }
    yajl_tree_free(asked.body);
    return result;
}
