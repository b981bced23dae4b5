/* SPDX-License-Identifier: MIT */
/* query.c: a session: an empty database in memory whose tables are the model's. See query.h. */
#include "analyze/query/query.h"

#include "analyze/query/callpaths.h"
#include "analyze/query/vtable.h"
#include "analyze/rows/number.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- What may be done ---- */

/* SQLite's functions that neither lead out of the database nor take or give addresses, sorted: of
 * all versions, as a newer one may bring anything. Ours are below. */
static const char *const functions[] = {"->",
                                        "->>",
                                        "abs",
                                        "acos",
                                        "acosh",
                                        "address",
                                        "asin",
                                        "asinh",
                                        "atan",
                                        "atan2",
                                        "atanh",
                                        "avg",
                                        "bytes",
                                        "ceil",
                                        "ceiling",
                                        "char",
                                        "coalesce",
                                        "concat",
                                        "concat_ws",
                                        "cos",
                                        "cosh",
                                        "count",
                                        "cume_dist",
                                        "current_date",
                                        "current_time",
                                        "current_timestamp",
                                        "date",
                                        "datetime",
                                        "degrees",
                                        "dense_rank",
                                        "duration",
                                        "exp",
                                        "first_value",
                                        "floor",
                                        "format",
                                        "function",
                                        "glob",
                                        "group_concat",
                                        "hex",
                                        "if",
                                        "ifnull",
                                        "iif",
                                        "instr",
                                        "json",
                                        "json_array",
                                        "json_array_length",
                                        "json_error_position",
                                        "json_extract",
                                        "json_group_array",
                                        "json_group_object",
                                        "json_insert",
                                        "json_object",
                                        "json_patch",
                                        "json_pretty",
                                        "json_quote",
                                        "json_remove",
                                        "json_replace",
                                        "json_set",
                                        "json_type",
                                        "json_valid",
                                        "julianday",
                                        "lag",
                                        "last_value",
                                        "lead",
                                        "length",
                                        "like",
                                        "likelihood",
                                        "likely",
                                        "ln",
                                        "log",
                                        "log10",
                                        "log2",
                                        "lower",
                                        "ltrim",
                                        "max",
                                        "median",
                                        "min",
                                        "mod",
                                        "nth_value",
                                        "ntile",
                                        "nullif",
                                        "octet_length",
                                        "path",
                                        "path_hash",
                                        "percent_rank",
                                        "percentile",
                                        "percentile_cont",
                                        "percentile_disc",
                                        "pi",
                                        "pow",
                                        "power",
                                        "printf",
                                        "quote",
                                        "radians",
                                        "random",
                                        "randomblob",
                                        "rank",
                                        "regexp",
                                        "replace",
                                        "round",
                                        "row_number",
                                        "rtrim",
                                        "sign",
                                        "sin",
                                        "sinh",
                                        "soundex",
                                        "sqlite_version",
                                        "sqrt",
                                        "strftime",
                                        "string_agg",
                                        "substr",
                                        "substring",
                                        "sum",
                                        "tan",
                                        "tanh",
                                        "time",
                                        "timediff",
                                        "total",
                                        "trim",
                                        "trunc",
                                        "typeof",
                                        "unhex",
                                        "unicode",
                                        "unistr",
                                        "unixepoch",
                                        "unlikely",
                                        "upper",
                                        "zeroblob"};

static int compare_names(const void *name, const void *entry) {
    return sqlite3_stricmp(name, *(const char *const *)entry);
}

static bool is_allowed(const char *function) {
    return function != NULL && bsearch(function, functions, sizeof functions / sizeof *functions,
                                       sizeof *functions, compare_names) != NULL;
}

/* Reading, and unless others ask temporary tables and views. No other file, no setting. */
static int authorize(void *context, int action, const char *first, const char *second,
                     const char *database, const char *trigger) {
    const struct query *query = context;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return is_allowed(second) ? SQLITE_OK : SQLITE_DENY;
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

/* What is sorted beyond the caches goes to files: memory does not grow with rows. */
static int bound_memory(sqlite3 *db) {
    return sqlite3_exec(db,
                        "PRAGMA temp_store = FILE; PRAGMA main.cache_size = -16384;"
                        "PRAGMA temp.cache_size = -16384",
                        NULL, NULL, NULL);
}

/* Makes the virtual tables. An SQLite error, or SQLITE_OK. */
static int add_tables(struct query *query, const char *schema) {
    int result = SQLITE_OK;
    for (size_t i = 0; vtable_list[i] != NULL && result == SQLITE_OK; i++) {
        char module[64];
        char *text;
        snprintf(module, sizeof module, "memtrace_%s", vtable_list[i]->rows->name);
        query->bindings[i] = (struct vtable_binding){query, vtable_list[i]};
        result =
            sqlite3_create_module(query->db, module, vtable_list[i]->module, &query->bindings[i]);
        text = sqlite3_mprintf("CREATE VIRTUAL TABLE %s.%s USING %s", schema,
                               vtable_list[i]->rows->name, module);
        if (result == SQLITE_OK) {
            result = text != NULL ? sqlite3_exec(query->db, text, NULL, NULL, NULL) : SQLITE_NOMEM;
        }
        sqlite3_free(text);
    }
    return result;
}

static struct query *session_open(const struct query_source *source, const char *path,
                                  const char *schema, struct error *error) {
    struct query *query = calloc(1, sizeof *query);
    int result = SQLITE_NOMEM;
    if (query == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    query->source = *source;
    query->of = (struct rows_of){
        .whole = source->whole, .model = source->model, .names = source->names, .run = source->run};
    query->bindings = calloc(VTABLES, sizeof *query->bindings);
    query->callpaths = callpaths_new();
    if (query->bindings != NULL && query->callpaths != NULL && rows_pair_scopes(&query->of) == 0) {
        result = spill_open(&query->spill, path, &query->db);
    }
    if (result == SQLITE_OK && (result = bound_memory(query->db)) == SQLITE_OK &&
        (result = vtable_add_functions(query)) == SQLITE_OK) {
        result = add_tables(query, schema);
    }
    if (result != SQLITE_OK) {
        error_set(error, "SQLite: %s",
                  query->db != NULL ? sqlite3_errmsg(query->db) : sqlite3_errstr(result));
        query_close(query);
        return NULL;
    }
    return query;
}

void query_resume(struct query *query) {
    atomic_store(&query->interrupted, false);
}

/* SQLite asks now and then: what was interrupted before it began is, too. */
static int is_interrupted(void *context) {
    const struct query *query = context;
    return atomic_load(&query->interrupted);
}

struct query *query_open(const struct query_source *source, struct error *error) {
    enum { STEPS = 10000 }; /* of SQLite's machine */
    struct query *query = session_open(source, ":memory:", "main", error);
    if (query != NULL) {
        sqlite3_limit(query->db, SQLITE_LIMIT_ATTACHED, 0);
        sqlite3_set_authorizer(query->db, authorize, query);
        sqlite3_progress_handler(query->db, STEPS, is_interrupted, query);
    }
    return query;
}

void query_close(struct query *query) {
    if (query == NULL) {
        return;
    }
    sqlite3_close(query->db);
    callpaths_free(query->callpaths);
    free(query->of.scopes);
    free(query->bindings);
    free(query);
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

/* One of the statements of a text. */
struct statement {
    const char *text;
    const char *sql; /* where in the text it begins */
    sqlite3_stmt *prepared;
};

int query_fail(const struct query *query, const char *text, const char *sql, struct error *error) {
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

static int run_statement(const struct query *query, const struct statement *statement,
                         const struct query_sink *sink, struct error *error) {
    int result = sqlite3_step(statement->prepared);
    int status;
    int ended;
    if (result != SQLITE_ROW && result != SQLITE_DONE) {
        return query_fail(query, statement->text, statement->sql, error);
    }
    if (sqlite3_column_count(statement->prepared) == 0) {
        return 0;
    }
    status = sink->begin(sink->context, statement->prepared);
    while (status == 0 && result == SQLITE_ROW) {
        status = sink->row(sink->context, statement->prepared);
        result = status == 0 ? sqlite3_step(statement->prepared) : result;
    }
    ended = sink->end(sink->context);
    if (status == 0 && result != SQLITE_DONE) {
        return query_fail(query, statement->text, statement->sql, error);
    }
    return status != 0 || ended != 0 ? QUERY_STOPPED : 0;
}

int query_run(struct query *query, const char *sql, const struct query_sink *sink,
              struct error *error) {
    struct statement statement = {.text = sql, .sql = sql};
    int result = 0;
    query->spill.was_full = false;
    while (result == 0 && *statement.sql != '\0') {
        const char *rest;
        if (sqlite3_prepare_v2(query->db, statement.sql, -1, &statement.prepared, &rest) !=
            SQLITE_OK) {
            return query_fail(query, statement.text, statement.sql, error);
        }
        if (statement.prepared != NULL) {
            result = run_statement(query, &statement, sink, error);
        }
        sqlite3_finalize(statement.prepared);
        statement.sql = rest;
    }
    return result;
}

/* ---- All tables as a database, to be kept ---- */

/* Runs one statement, which it frees; NULL: no memory. An SQLite error, or SQLITE_OK. */
static int run(struct query *query, char *sql) {
    int result = sql != NULL ? sqlite3_exec(query->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return result;
}

/* Single allocations and mappings are only in recordings. */
static bool has_rows(const struct query *query, const struct vtable *table) {
    return query->source.parts.count != 0 ||
           (table != &vtable_allocations && table != &vtable_mappings);
}

static int write_table(struct query *query, const struct vtable *table) {
    int result = run(query, vtable_declaration(table, "main."));
    if (result == SQLITE_OK && has_rows(query, table)) {
        result = run(query, sqlite3_mprintf("INSERT INTO main.%s SELECT * FROM temp.%s",
                                            table->rows->name, table->rows->name));
    }
    return result;
}

static int write_indices(struct query *query, const struct vtable *table) {
    int result = SQLITE_OK;
    for (size_t i = 0; table->indices != NULL && table->indices[i] != NULL && result == SQLITE_OK;
         i++) {
        result =
            run(query, sqlite3_mprintf("CREATE INDEX main.%s_by_%s ON %s(%s)", table->rows->name,
                                       table->indices[i], table->rows->name, table->indices[i]));
    }
    return result;
}

static int write_all(struct query *query) {
    int result = run(query, sqlite3_mprintf("PRAGMA main.journal_mode = OFF;"
                                            "PRAGMA main.synchronous = OFF; BEGIN"));
    for (size_t i = 0; vtable_list[i] != NULL && result == SQLITE_OK; i++) {
        result = write_table(query, vtable_list[i]);
    }
    for (size_t i = 0; vtable_list[i] != NULL && result == SQLITE_OK; i++) {
        result = write_indices(query, vtable_list[i]);
    }
    return result == SQLITE_OK ? run(query, sqlite3_mprintf("COMMIT")) : result;
}

int query_export(const struct query_source *source, const char *path, struct error *error) {
    struct query *query = session_open(source, path, "temp", error);
    int result;
    if (query == NULL) {
        return -1;
    }
    result = write_all(query);
    if (result != SQLITE_OK) {
        error_set(error, "SQLite: %s", sqlite3_errmsg(query->db));
    }
    query_close(query);
    return result == SQLITE_OK ? 0 : -1;
}

/* ---- The rows of a statement as a table ---- */

/* The caller frees it. NULL: out of memory. */
static char *spell_blob(sqlite3_stmt *statement, int column) {
    const unsigned char *bytes = sqlite3_column_blob(statement, column);
    size_t size = (size_t)sqlite3_column_bytes(statement, column);
    char *text = calloc(size * 2 + 1, 1);
    for (size_t i = 0; text != NULL && i < size; i++) {
        sqlite3_snprintf(3, text + 2 * i, "%02x", bytes[i]);
    }
    return text;
}

static struct table_cell cell_of(sqlite3_stmt *statement, int column) {
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
        cell.text = spell_blob(statement, column);
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

static int end(void *context) {
    struct statement_writer *writer = context;
    if (writer->is_begun) {
        table_close_statement(&writer->table);
    }
    free(writer->columns);
    free(writer->cells);
    writer->columns = NULL;
    writer->cells = NULL;
    writer->is_begun = false;
    return 0;
}

static int begin(void *context, sqlite3_stmt *statement) {
    struct statement_writer *writer = context;
    size_t count = (size_t)sqlite3_column_count(statement);
    writer->columns = calloc(count, sizeof *writer->columns);
    writer->cells = calloc(count, sizeof *writer->cells);
    for (size_t i = 0; writer->columns != NULL && i < count; i++) {
        writer->columns[i] = (struct table_column){.name = sqlite3_column_name(statement, (int)i),
                                                   .kind = TABLE_ANY};
        if (writer->columns[i].name == NULL) {
            return -1;
        }
    }
    if (writer->columns == NULL || writer->cells == NULL ||
        table_open_statement(&writer->table, &writer->report, &writer->options, writer->columns,
                             count) != 0) {
        return -1;
    }
    writer->is_begun = true;
    return 0;
}

static int row(void *context, sqlite3_stmt *statement) {
    struct statement_writer *writer = context;
    bool is_whole = true;
    for (size_t i = 0; i < writer->table.count; i++) {
        writer->cells[i] = cell_of(statement, (int)i);
        is_whole &= writer->cells[i].text != NULL || !writer->cells[i].is_known;
    }
    if (is_whole) {
        table_row(&writer->table, writer->cells);
    }
    for (size_t i = 0; i < writer->table.count; i++) {
        if (writer->cells[i].is_owned) {
            free((char *)writer->cells[i].text);
        }
    }
    return !is_whole || writer->table.is_failed || ferror(writer->report.out);
}

struct query_sink statement_sink(struct statement_writer *writer) {
    return (struct query_sink){.begin = begin, .row = row, .end = end, .context = writer};
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
