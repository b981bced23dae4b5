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

#include "analyze/base/timedwait.h"
#include "analyze/query/query.h"

#include <pthread.h>
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

void api_schema(struct api_call *call) {
    struct jsonwriter *json = call->json;
    const struct rows *rows;
    jsonwriter_map(json, NULL);
    jsonwriter_array(json, "tables");
    for (size_t i = 0; (rows = query_table(i)) != NULL; i++) {
        jsonwriter_map(json, NULL);
        jsonwriter_string(json, "name", rows->name);
        jsonwriter_string(json, "about", rows->about);
        jsonwriter_array(json, "columns");
        for (size_t k = 0; k < rows->column_count; k++) {
            if (rows->columns[k].sql == NULL) {
                continue;
            }
            jsonwriter_map(json, NULL);
            jsonwriter_string(json, "name", rows->columns[k].sql);
            jsonwriter_string(json, "type", query_type(&rows->columns[k]));
            jsonwriter_string(json, "about", rows->columns[k].about);
            jsonwriter_end_map(json);
        }
        jsonwriter_end_array(json);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
    api_command(call, "query --schema");
}

/* ---- What is asked ---- */

struct asked {
    const char *sql;
    size_t limit;
    bool only_plan;
};

static struct asked read_body(struct api_call *call) {
    struct asked asked = {.limit = ROWS_MOST};
    yajl_val body = api_body(call);
    yajl_val plan;
    yajl_val limit;
    if (body == NULL) {
        api_refuse(call, 400, "a JSON object with \"sql\" is needed");
    }
    asked.sql = YAJL_GET_STRING(jsontree_member(body, "sql"));
    if (asked.sql == NULL) {
        api_refuse(call, 400, "\"sql\" is missing, or no text");
    }
    plan = jsontree_member(body, "plan");
    if (plan != NULL && !YAJL_IS_TRUE(plan) && !YAJL_IS_FALSE(plan)) {
        api_refuse(call, 400, "plan is true or false");
    }
    asked.only_plan = YAJL_IS_TRUE(plan);
    for (size_t i = 0; i < YAJL_GET_OBJECT(body)->len; i++) {
        const char *key = YAJL_GET_OBJECT(body)->keys[i];
        if (strcmp(key, "sql") != 0 && strcmp(key, "limit") != 0 && strcmp(key, "plan") != 0) {
            api_refuse(call, 400, "there is no member '%s' here", key);
        }
    }
    limit = jsontree_member(body, "limit");
    if (limit != NULL && (!YAJL_IS_INTEGER(limit) || YAJL_GET_INTEGER(limit) < 1 ||
                          YAJL_GET_INTEGER(limit) > ROWS_MOST)) {
        api_refuse(call, 400, "limit is a number from 1 to %d", ROWS_MOST);
    }
    asked.limit = limit != NULL ? (size_t)YAJL_GET_INTEGER(limit) : ROWS_MOST;
    return asked;
}

/* ---- Whoever ends it ---- */

struct guard {
    struct query *query;
    const char *sql; /* what is run */
    const struct query_sink *sink;
    struct error error;
    int result;
    const atomic_bool *cancel;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct timespec start;
    bool is_over;  /* the query came to its end */
    bool was_long; /* it was ended, since it took too long */
};

static void *watch(void *context) {
    struct guard *guard = context;
    pthread_mutex_lock(&guard->lock);
    while (!guard->is_over) {
        struct timespec until = timedwait_until(LOOK_MS);
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        guard->was_long |= now.tv_sec - guard->start.tv_sec >= SECONDS_MOST;
        if (guard->was_long || (guard->cancel != NULL && atomic_load(guard->cancel))) {
            query_interrupt(guard->query);
        }
        pthread_cond_timedwait(&guard->changed, &guard->lock, &until);
    }
    pthread_mutex_unlock(&guard->lock);
    return NULL;
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
    struct query_sink inner;   /* statement_sink() */
    struct job_printing *plan; /* NULL: the rows are wanted */
    size_t limit;
    size_t bytes;
    bool is_truncated;
};

static int apiquery_on_begin(void *context, sqlite3_stmt *statement) {
    struct answering *answering = context;
    if (answering->plan != NULL) {
        return 0;
    }
    answering->taken = (struct apireport){0};
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

static int apiquery_on_row(void *context, sqlite3_stmt *statement) {
    struct answering *answering = context;
    const struct apireport *taken = &answering->taken;
    if (answering->plan != NULL) {
        return put_plan(answering->plan->out, statement);
    }
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        answering->bytes += (size_t)sqlite3_column_bytes(statement, i) + sizeof(struct table_cell);
    }
    if (answering->bytes > BYTES_MOST ||
        (taken->count != 0 && taken->tables[taken->count - 1].rows == answering->limit)) {
        answering->is_truncated = true;
        return 1;
    }
    return answering->inner.row(&answering->writer, statement) != 0;
}

static int apiquery_on_end(void *context) {
    struct answering *answering = context;
    return answering->plan != NULL ? 1 /* the rest of the text is not run */
                                   : answering->inner.end(&answering->writer);
}

static void run_guarded(void *what) {
    struct guard *guard = what;
    guard->result = query_run(guard->query, guard->sql, guard->sink, &guard->error);
}

static void apiquery_run(struct api_call *call, struct query *query, const char *sql,
                         struct answering *answering) {
    const struct query_sink sink = {.begin = apiquery_on_begin,
                                    .row = apiquery_on_row,
                                    .end = apiquery_on_end,
                                    .context = answering};
    struct guard guard = {.query = query, .sql = sql, .sink = &sink, .cancel = call->replay.cancel};
    clock_gettime(CLOCK_MONOTONIC, &guard.start);
    pthread_mutex_init(&guard.lock, NULL);
    timedwait_init(&guard.changed);
    if (pthread_create(&guard.thread, NULL, watch, &guard) != 0) {
        job_fail("no thread for the query");
    }
    job_finally(run_guarded, guard_end, &guard);
    if (guard.was_long) {
        api_refuse(call, 503, "the query was ended after %d s: narrow it, or ask `memtrace query`",
                   SECONDS_MOST);
    }
    if (guard.result < 0) {
        call->status = replay_is_cancelled(&call->replay) ? 503 : 400;
        job_fail_as(&guard.error);
    }
    if (guard.result == QUERY_STOPPED && answering->plan == NULL && !answering->is_truncated) {
        job_fail_memory();
    }
}

/* ---- The answer ---- */

static void answer_asked(struct api_call *call, struct query *query, const struct asked *asked) {
    static const struct apireport_table nothing;
    struct answering *answering = job_alloc(sizeof *answering);
    const struct apireport *taken = &answering->taken;
    struct apitable table;
    answering->limit = asked->limit;
    answering->sink = apireport_sink(&answering->taken);
    answering->writer.report =
        (struct report){.out = call->out, .options.format = REPORT_SINK, .sink = &answering->sink};
    answering->inner = statement_sink(&answering->writer);
    answering->plan = asked->only_plan ? job_print() : NULL;
    apiquery_run(call, query,
                 asked->only_plan ? job_text("EXPLAIN QUERY PLAN %s", asked->sql) : asked->sql,
                 answering);
    apireport_begin(call, NULL, taken->count != 0 ? &taken->tables[taken->count - 1] : &nothing,
                    &table);
    if (answering->plan != NULL) {
        jsonwriter_string(call->json, "plan", job_printed(answering->plan));
    }
    jsonwriter_bool(call->json, "truncated", answering->is_truncated);
    apitable_end(&table);
}

/* Each table of a join has a pass, and a thread, of its own: one after the other tells how far it
 * is. */
struct telling {
    pthread_mutex_t lock;
    const struct replay_options *to;
};

static void apiquery_tell(void *context, uint64_t done, uint64_t total) {
    struct telling *telling = context;
    pthread_mutex_lock(&telling->lock);
    telling->to->progress(telling->to->context, done, total);
    pthread_mutex_unlock(&telling->lock);
}

void api_query(struct api_call *call) {
    const struct asked asked = read_body(call);
    const struct answer *view = call->view;
    struct telling *telling = job_alloc(sizeof *telling);
    const struct replay_options replay = {
        .progress = call->replay.progress != NULL ? apiquery_tell : NULL, .context = telling};
    const struct query_source source = {.whole = view->whole,
                                        .model = view->model,
                                        .selection = view->selection,
                                        .names = view->names,
                                        .parts = view->source->parts,
                                        .run = view->source->run,
                                        .replay = &replay,
                                        .has_full_names = call->report.options.full_names};
    struct query *query;
    pthread_mutex_init(&telling->lock, NULL);
    telling->to = &call->replay;
    query = query_open(&source);
    query_bound(query, TEXT_MOST, SPILL_MOST);
    api_command(call, "query");
    call->told.operand = job_string(asked.sql);
    api_sql(call, "%s", asked.sql);
    answer_asked(call, query, &asked);
    call->told.via = query_work(query).passes != 0 ? API_VIA_PASS : call->told.via;
}
