/* SPDX-License-Identifier: MIT */
/* query.c: a session: an empty database in memory whose tables are the model's. See query.h. */
#include "analyze/query/query.h"

#include "analyze/base/job.h"
#include "analyze/query/vtable.h"
#include "analyze/rows/number.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- What may be done ---- */

/* SQLite's functions that neither lead out of the database nor take or give addresses: of all
 * versions, as a newer one may bring anything. Ours are below. A blank stands around each. */
static const char query_functions[] =
    " "
    "-> ->> abs acos acosh address asin asinh atan atan2 atanh avg bytes ceil "
    "ceiling char coalesce concat concat_ws cos cosh count cume_dist current_date "
    "current_time current_timestamp date datetime degrees dense_rank duration exp "
    "first_value floor format function glob group_concat hex if ifnull iif instr "
    "json json_array json_array_length json_error_position json_extract "
    "json_group_array json_group_object json_insert json_object json_patch "
    "json_pretty json_quote json_remove json_replace json_set json_type json_valid "
    "julianday lag last_value lead length like likelihood likely ln log log10 log2 "
    "lower ltrim max median min mod nth_value ntile nullif octet_length path "
    "path_hash percent_rank percentile percentile_cont percentile_disc pi pow power "
    "printf quote radians random randomblob rank regexp replace round row_number "
    "rtrim sign sin sinh soundex sqlite_version sqrt strftime string_agg substr "
    "substring sum tan tanh time timediff total trim trunc typeof unhex unicode "
    "unistr unixepoch unlikely upper zeroblob ";

static bool query_is_allowed(const char *function) {
    char word[40];
    int size = snprintf(word, sizeof word, " %s ", function != NULL ? function : "");
    return size > 2 && (size_t)size < sizeof word && strchr(word + 1, ' ') == word + size - 1 &&
           strcasestr(query_functions, word) != NULL;
}

/* Reading, and unless others ask temporary tables and views. No other file, no setting. */
static int query_authorize(void *context, int action, const char *first, const char *second,
                           const char *database, const char *trigger) {
    const struct query *query = context;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return query_is_allowed(second) ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_PRAGMA:
        return sqlite3_strnicmp(first, "table_", 6) == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_CREATE_VTABLE:
    case SQLITE_DROP_VTABLE:
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
        return SQLITE_DENY;
    default:
        return !query->only_reads && database != NULL && strcmp(database, "temp") == 0
                   ? SQLITE_OK
                   : SQLITE_DENY;
    }
}

/* ---- Opening and closing ---- */

/* Makes the virtual tables. An SQLite error, or SQLITE_OK. */
static int query_add_tables(struct query *query, const char *schema) {
    int result = SQLITE_OK;
    for (size_t i = 0; vtable_list[i] != NULL && result == SQLITE_OK; i++) {
        char module[64];
        char *text;
        snprintf(module, sizeof module, "memtrace_%s", vtable_list[i]->rows->name);
        query->bindings[i] = (struct vtable_binding){query, vtable_list[i]};
        result = sqlite3_create_module(query->db, module, &vtable_module, &query->bindings[i]);
        text = sqlite3_mprintf("CREATE VIRTUAL TABLE %s.%s USING %s", schema,
                               vtable_list[i]->rows->name, module);
        if (result == SQLITE_OK) {
            result = text != NULL ? sqlite3_exec(query->db, text, NULL, NULL, NULL) : SQLITE_NOMEM;
        }
        sqlite3_free(text);
    }
    return result;
}

static void query_end(void *query) {
    query_close(query);
}

/* Belongs to the job. */
static struct query *query_begin(const struct query_source *source, const char *path,
                                 const char *schema) {
    struct query *query = job_alloc(sizeof *query);
    int result;
    query->source = *source;
    query->of = (struct rows_of){
        .whole = source->whole, .model = source->model, .names = source->names, .run = source->run};
    query->callpaths = callpaths_new();
    job_undo(query_end, query);
    if (rows_pair_scopes(&query->of) != 0) {
        job_fail_memory();
    }
    result = spill_open(&query->spill, path, &query->db);
    if (result == SQLITE_OK) {
        /* What is sorted beyond the caches goes to files: memory does not grow with rows. */
        result = sqlite3_exec(query->db,
                              "PRAGMA temp_store = FILE; PRAGMA main.cache_size = -16384;"
                              "PRAGMA temp.cache_size = -16384",
                              NULL, NULL, NULL);
    }
    if (result == SQLITE_OK && (result = callpaths_add_functions(query)) == SQLITE_OK) {
        result = query_add_tables(query, schema);
    }
    if (result != SQLITE_OK) {
        job_fail("SQLite: %s",
                 query->db != NULL ? sqlite3_errmsg(query->db) : sqlite3_errstr(result));
    }
    return query;
}

void query_resume(struct query *query) {
    atomic_store(&query->interrupted, false);
}

/* SQLite asks now and then: what was interrupted before it began is, too. */
static int query_is_interrupted(void *context) {
    const struct query *query = context;
    return atomic_load(&query->interrupted);
}

struct query *query_open(const struct query_source *source) {
    enum { STEPS = 10000 }; /* of SQLite's machine */
    struct query *query = query_begin(source, ":memory:", "main");
    sqlite3_limit(query->db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_set_authorizer(query->db, query_authorize, query);
    sqlite3_progress_handler(query->db, STEPS, query_is_interrupted, query);
    return query;
}

void query_close(struct query *query) {
    sqlite3_close(query->db);
    query->db = NULL;
    callpaths_free(query->callpaths);
    free(query->of.scopes);
    query->of.scopes = NULL;
}

void query_interrupt(struct query *query) {
    atomic_store(&query->interrupted, true);
    sqlite3_interrupt(query->db);
}

void query_bound(struct query *query, int text_most, uint64_t spill_most) {
    enum { SQL_MOST = 1 << 20 };
    query->only_reads = true;
    spill_limit(&query->spill, spill_most);
    sqlite3_limit(query->db, SQLITE_LIMIT_LENGTH, text_most);
    sqlite3_limit(query->db, SQLITE_LIMIT_SQL_LENGTH, SQL_MOST);
}

struct query_work query_work(const struct query *query) {
    return (struct query_work){atomic_load(&query->passes), atomic_load(&query->rows)};
}

/* ---- Running ---- */

/* One line: SQLite's reason, and where in the text it saw it: what was prepared is that from `sql`
 * on. Always -1. */
static int query_fail(const struct query *query, const char *text, const char *sql,
                      struct error *error) {
    enum { SHOWN = 30 };
    const char *reason = sqlite3_errmsg(query->db);
    int offset = sqlite3_error_offset(query->db);
    char near[SHOWN + 1] = "";
    if (atomic_load(&query->interrupted)) {
        return error_set(error, "interrupted");
    }
    if (query->spill.was_full) {
        struct number most;
        return error_set(error, "more than %s would go to temporary files in %s",
                         number_bytes(&most, query->spill.bytes_most), query->spill.folder);
    }
    if (offset < 0 || (size_t)offset >= strlen(sql)) {
        return error_set(error, "%s", reason);
    }
    for (int i = 0; i < SHOWN && sql[offset + i] != '\0'; i++) {
        near[i] = sql[offset + i] == '\n' ? ' ' : sql[offset + i];
    }
    return error_set(error, "%s, at character %td: %s", reason, sql - text + offset + 1, near);
}

/* A text that is run, statement by statement. */
struct query_running {
    struct query *query;
    const char *text;
    const char *sql;        /* where in the text the present one begins */
    sqlite3_stmt *prepared; /* NULL: none */
    const struct query_sink *sink;
    struct error *error;
    int result; /* as query_run() returns it */
};

static int query_run_statement(const struct query_running *running) {
    const struct query_sink *sink = running->sink;
    int result = sqlite3_step(running->prepared);
    int status;
    int ended;
    if (result != SQLITE_ROW && result != SQLITE_DONE) {
        return query_fail(running->query, running->text, running->sql, running->error);
    }
    if (sqlite3_column_count(running->prepared) == 0) {
        return 0;
    }
    status = sink->begin(sink->context, running->prepared);
    while (status == 0 && result == SQLITE_ROW) {
        status = sink->row(sink->context, running->prepared);
        result = status == 0 ? sqlite3_step(running->prepared) : result;
    }
    ended = sink->end(sink->context);
    if (status == 0 && result != SQLITE_DONE) {
        return query_fail(running->query, running->text, running->sql, running->error);
    }
    return status != 0 || ended != 0 ? QUERY_STOPPED : 0;
}

/* Also ends the passes behind it, which look at what may lie in frames that are about to go. */
static void query_finalize(void *what) {
    struct query_running *running = what;
    sqlite3_finalize(running->prepared);
    running->prepared = NULL;
}

static void query_run_all(void *what) {
    struct query_running *running = what;
    while (running->result == 0 && *running->sql != '\0') {
        const char *rest;
        if (sqlite3_prepare_v2(running->query->db, running->sql, -1, &running->prepared, &rest) !=
            SQLITE_OK) {
            running->result =
                query_fail(running->query, running->text, running->sql, running->error);
            return;
        }
        if (running->prepared != NULL) {
            running->result = query_run_statement(running);
        }
        query_finalize(running);
        running->sql = rest;
    }
}

int query_run(struct query *query, const char *sql, const struct query_sink *sink,
              struct error *error) {
    struct query_running running = {
        .query = query, .text = sql, .sql = sql, .sink = sink, .error = error};
    query->spill.was_full = false;
    job_finally(query_run_all, query_finalize, &running);
    return running.result;
}

/* ---- All tables as a database, to be kept ---- */

/* Runs one statement, which it frees; NULL: no memory. An SQLite error, or SQLITE_OK. */
static int query_run_sql(struct query *query, char *sql) {
    int result = sql != NULL ? sqlite3_exec(query->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return result;
}

/* Single allocations and mappings are only in recordings. */
static bool query_has_rows(const struct query *query, const struct vtable *table) {
    return query->source.parts.count != 0 ||
           (table != &vtable_allocations && table != &vtable_mappings);
}

static int query_write_table(struct query *query, const struct vtable *table) {
    int result = query_run_sql(query, vtable_declaration(table, "main."));
    if (result == SQLITE_OK && query_has_rows(query, table)) {
        result = query_run_sql(query, sqlite3_mprintf("INSERT INTO main.%s SELECT * FROM temp.%s",
                                                      table->rows->name, table->rows->name));
    }
    return result;
}

static int query_write_indices(struct query *query, const struct vtable *table) {
    int result = SQLITE_OK;
    for (size_t i = 0; table->indices != NULL && table->indices[i] != NULL && result == SQLITE_OK;
         i++) {
        result = query_run_sql(query, sqlite3_mprintf("CREATE INDEX main.%s_by_%s ON %s(%s)",
                                                      table->rows->name, table->indices[i],
                                                      table->rows->name, table->indices[i]));
    }
    return result;
}

static int query_write_all(struct query *query) {
    int result = query_run_sql(query, sqlite3_mprintf("PRAGMA main.journal_mode = OFF;"
                                                      "PRAGMA main.synchronous = OFF; BEGIN"));
    for (size_t i = 0; vtable_list[i] != NULL && result == SQLITE_OK; i++) {
        result = query_write_table(query, vtable_list[i]);
    }
    for (size_t i = 0; vtable_list[i] != NULL && result == SQLITE_OK; i++) {
        result = query_write_indices(query, vtable_list[i]);
    }
    return result == SQLITE_OK ? query_run_sql(query, sqlite3_mprintf("COMMIT")) : result;
}

void query_export(const struct query_source *source, const char *path) {
    struct query *query = query_begin(source, path, "temp");
    if (query_write_all(query) != SQLITE_OK) {
        job_fail("SQLite: %s", sqlite3_errmsg(query->db));
    }
    query_close(query);
}

/* ---- The rows of a statement as a table ---- */

/* To be released. */
static char *statement_blob(const unsigned char *bytes, size_t size) {
    char *text = job_array(size * 2 + 1, 1);
    for (size_t i = 0; i < size; i++) {
        sqlite3_snprintf(3, text + 2 * i, "%02x", bytes[i]);
    }
    return text;
}

static struct table_cell statement_cell(sqlite3_stmt *statement, int column) {
    struct table_cell cell = {.is_known = true, .kind = TABLE_TEXT};
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        cell.kind = TABLE_SIGNED;
        cell.number = (uint64_t)sqlite3_column_int64(statement, column);
        break;
    case SQLITE_FLOAT:
        cell.kind = TABLE_REAL;
        cell.real = sqlite3_column_double(statement, column);
        break;
    case SQLITE_BLOB:
        cell.text = statement_blob(sqlite3_column_blob(statement, column),
                                   (size_t)sqlite3_column_bytes(statement, column));
        cell.is_owned = true;
        return cell;
    case SQLITE_NULL:
        cell.is_known = false;
        return cell;
    default:
        break;
    }
    cell.text = (const char *)sqlite3_column_text(statement, column);
    return cell;
}

static int statement_end(void *context) {
    struct statement_writer *writer = context;
    if (writer->is_begun) {
        table_close_statement(&writer->table);
    }
    job_release(writer->columns);
    job_release(writer->cells);
    writer->columns = NULL;
    writer->cells = NULL;
    writer->is_begun = false;
    return 0;
}

static int statement_begin(void *context, sqlite3_stmt *statement) {
    struct statement_writer *writer = context;
    size_t count = (size_t)sqlite3_column_count(statement);
    writer->columns = job_array(count, sizeof *writer->columns);
    writer->cells = job_array(count, sizeof *writer->cells);
    for (size_t i = 0; i < count; i++) {
        writer->columns[i] = (struct table_column){.name = sqlite3_column_name(statement, (int)i),
                                                   .kind = TABLE_ANY};
        if (writer->columns[i].name == NULL) {
            return -1;
        }
    }
    writer->table = table_open_statement(&writer->report, &writer->options, writer->columns, count);
    writer->is_begun = true;
    return 0;
}

static int statement_row(void *context, sqlite3_stmt *statement) {
    struct statement_writer *writer = context;
    bool is_whole = true;
    for (size_t i = 0; i < writer->table.count; i++) {
        writer->cells[i] = statement_cell(statement, (int)i);
        is_whole &= writer->cells[i].text != NULL || !writer->cells[i].is_known;
    }
    if (is_whole) {
        table_row(&writer->table, writer->cells);
    }
    for (size_t i = 0; i < writer->table.count; i++) {
        if (writer->cells[i].is_owned) {
            job_release((char *)writer->cells[i].text);
        }
    }
    return !is_whole || ferror(writer->report.out);
}

struct query_sink statement_sink(struct statement_writer *writer) {
    return (struct query_sink){
        .begin = statement_begin, .row = statement_row, .end = statement_end, .context = writer};
}

bool statement_format_named(const char *name, enum report_format *format) {
    static const char *const names[] = {[REPORT_TEXT] = "table",
                                        [REPORT_MARKDOWN] = "markdown",
                                        [REPORT_CSV] = "csv",
                                        [REPORT_TSV] = "tsv",
                                        [REPORT_JSON] = "json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            *format = (enum report_format)i;
            return true;
        }
    }
    return false;
}

/* ---- An expression of SQL as a filter of blocks: the statement that finds their ids is run once,
 * before the pass that is filtered ---- */

/* Expressions stand in parentheses, on lines of their own for those that end in a comment. */
#define BEFORE       "SELECT id FROM allocations WHERE ("
#define BEFORE_TWICE "SELECT id FROM allocations WHERE (("
#define AFTER        "\n)"

enum {
    STEPS = 10000,        /* of SQLite's machine between two looks */
    STEPS_A_BLOCK = 5000, /* a subquery over a small table, for each */
    TEXT_MOST = 1 << 20,
    SPILL_MOST = 1 << 30
};
static const uint64_t steps_at_least = 50000000;

struct search {
    struct query *query;
    const struct replay_options *replay; /* NULL: nobody waits */
    pthread_mutex_t lock;                /* subqueries have passes of their own */
    uint64_t steps, steps_most;
    bool is_too_long;
    sqlite3_stmt *statement; /* NULL: none */
    struct selection_blocks *found;
    struct error *error;
    int result;
};

static bool where_is_cancelled(const struct search *search) {
    return search->replay != NULL && replay_is_cancelled(search->replay);
}

static int where_look(void *context) {
    struct search *search = context;
    search->steps += STEPS;
    search->is_too_long |= search->steps > search->steps_most;
    return search->is_too_long || where_is_cancelled(search);
}

/* Of the passes: SQLite waits meanwhile, and takes no step. */
static void where_tell(void *context, uint64_t done, uint64_t total) {
    struct search *search = context;
    if (where_is_cancelled(search)) {
        query_interrupt(search->query);
    }
    if (search->replay != NULL && search->replay->progress != NULL) {
        pthread_mutex_lock(&search->lock);
        search->replay->progress(search->replay->context, done, total);
        pthread_mutex_unlock(&search->lock);
    }
}

/* NULL: error is set. Positions in the expression count from 1. */
static sqlite3_stmt *where_prepare(const struct query *query, const char *before,
                                   const char *expression, const char *after, struct error *error) {
    sqlite3_stmt *statement = NULL;
    char *sql = sqlite3_mprintf("%s%s%s", before, expression, after);
    if (sql == NULL) {
        error_set(error, "out of memory");
    } else if (sqlite3_prepare_v2(query->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        query_fail(query, sql + strlen(before), sql, error);
    }
    sqlite3_free(sql);
    return statement;
}

/* In two pairs of parentheses as well as in one: so none of its own closes ours. */
static sqlite3_stmt *where_prepare_expression(const struct query *query, const char *expression,
                                              struct error *error) {
    sqlite3_stmt *statement = where_prepare(query, BEFORE, expression, AFTER, error);
    sqlite3_stmt *other = NULL;
    if (expression[strspn(expression, " \t\n")] == '\0') {
        error_set(error, "there is no expression");
    } else if (statement != NULL) {
        other = where_prepare(query, BEFORE_TWICE, expression, AFTER ")", error);
    }
    if (other == NULL) {
        sqlite3_finalize(statement);
        return NULL;
    }
    sqlite3_finalize(other);
    return statement;
}

static void where_collect(void *what) {
    struct search *search = what;
    struct error *error = search->error;
    int step;
    while ((step = sqlite3_step(search->statement)) == SQLITE_ROW) {
        selection_add_block(search->found, (uint64_t)sqlite3_column_int64(search->statement, 0));
    }
    search->result = step == SQLITE_DONE   ? 0
                     : search->is_too_long ? error_set(error, "the expression takes too many steps")
                     : where_is_cancelled(search) ? error_set(error, "cancelled")
                                                  : query_fail(search->query, "", "", error);
}

/* Ends the passes behind it as well, which look at the search. */
static void where_finalize(void *what) {
    struct search *search = what;
    sqlite3_finalize(search->statement);
    search->statement = NULL;
}

int query_where(const struct query_source *source, const char *expression,
                struct selection_blocks *found, struct error *error) {
    const struct selection all = selection_all();
    struct search search = {.replay = source->replay,
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .steps_most =
                                steps_at_least + source->whole->totals.allocations * STEPS_A_BLOCK,
                            .found = found,
                            .error = error,
                            .result = -1};
    const struct replay_options replay = {.progress = where_tell, .context = &search};
    struct query_source asked = *source;
    asked.model = source->whole;
    asked.selection = &all;
    asked.replay = &replay;
    search.query = query_open(&asked);
    query_bound(search.query, TEXT_MOST, SPILL_MOST);
    sqlite3_progress_handler(search.query->db, STEPS, where_look, &search);
    search.statement = where_prepare_expression(search.query, expression, error);
    if (search.statement != NULL) {
        job_finally(where_collect, where_finalize, &search);
    }
    query_close(search.query);
    return search.result;
}
