/* SPDX-License-Identifier: MIT */
/*
 * vtable.h: what the tables of a session share: how a table is described, its session, and how
 * SQLite connects to it. Nobody else's business than that of analyze/query.
 *
 * A table is a constant. Small ones are arrays (arraytable.c): they say how many rows they have and
 * what is in them. The others have a module of their own.
 */
#ifndef ANALYZE_QUERY_VTABLE_H
#define ANALYZE_QUERY_VTABLE_H

#include "analyze/query/query.h"

#include <stdatomic.h>

struct vtable_column {
    const char *name;
    const char *type; /* as CREATE TABLE says it */
    const char *about;
};

struct vtable {
    const char *name;
    const char *about;
    const struct vtable_column *columns;
    size_t column_count;
    const char *const *indices; /* what CREATE INDEX says in a written file; NULL ends them */
    const sqlite3_module *module;
    size_t cursor_size; /* of what the module's xOpen makes; it begins with sqlite3_vtab_cursor */

    /* Arrays only. */
    size_t (*count)(const struct query *query);
    void (*put)(const struct query *query, size_t row, int column, sqlite3_context *out);
    /* The row whose first column has this value, or SIZE_MAX. NULL: rows are not found so. */
    size_t (*find)(const struct query *query, sqlite3_int64 value);
    /* All rows, those with the same value in this column next to each other, so that who groups by
     * it need not sort; they last as long as the session. NULL: rows are not had so; else NULL is
     * no memory. */
    const uint32_t *(*grouped)(const struct query *query);
    int grouped_column;
};

#define VTABLE_COLUMNS(array) .columns = (array), .column_count = sizeof(array) / sizeof((array)[0])

/* A scope that a thread went through: places in model.marks. end SIZE_MAX: it never ended. */
struct vtable_scope {
    size_t begin;
    size_t end;
};

struct callpaths;

struct query {
    struct query_source source;
    sqlite3 *db;
    atomic_bool interrupted;
    atomic_ullong passes;
    atomic_ullong rows;
    struct vtable_scope *scopes;
    size_t scope_count;
    struct vtable_binding *bindings; /* one a table */
    struct callpaths *callpaths;
};

/* What SQLite gets with a module: whose it is. */
struct vtable_binding {
    struct query *query;
    const struct vtable *table;
};

struct vtable_view {
    sqlite3_vtab base;
    struct query *query;
    const struct vtable *table;
};

/* xCreate, xConnect; xDisconnect, xDestroy. */
int vtable_connect(sqlite3 *db, void *binding, int argc, const char *const *argv,
                   sqlite3_vtab **view, char **error);
int vtable_disconnect(sqlite3_vtab *view);

/* xOpen, of a cursor that is all zero at first; xClose, of one that owns nothing. */
int vtable_open(sqlite3_vtab *view, sqlite3_vtab_cursor **cursor);
int vtable_close(sqlite3_vtab_cursor *cursor);

/* xBestIndex of tables that find rows by one column's value: whether it is to equal something,
 * which is argv[0] of xFilter then, with idxNum 1 and idxStr "NAME=". */
bool vtable_ask_equal(sqlite3_index_info *info, const struct vtable *table, int column);

/* A module; what is not named here its file calls as SQLite does. */
#define VTABLE_MODULE(close, column)                                                               \
    {                                                                                              \
        .iVersion = 1, .xCreate = vtable_connect, .xConnect = vtable_connect,                      \
        .xBestIndex = best_index, .xDisconnect = vtable_disconnect, .xDestroy = vtable_disconnect, \
        .xOpen = vtable_open, .xClose = (close), .xFilter = filter, .xNext = next, .xEof = at_end, \
        .xColumn = (column), .xRowid = rowid                                                       \
    }

/* The table's error from now on: SQLITE_ERROR is returned. */
int vtable_fail(sqlite3_vtab *view, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "CREATE TABLE SCHEMA" "NAME(...)", the schema "main." or empty; the caller frees it by
 * sqlite3_free(). NULL: no memory. */
char *vtable_declaration(const struct vtable *table, const char *schema);

struct vtable_array_cursor {
    sqlite3_vtab_cursor base;
    size_t row;
    size_t end;
    const uint32_t *order; /* NULL: as they are */
};
extern const sqlite3_module vtable_array_module;
#define VTABLE_ARRAY                                                                               \
    .module = &vtable_array_module, .cursor_size = sizeof(struct vtable_array_cursor)

extern const struct vtable *const vtable_list[]; /* NULL ends it */
enum { VTABLES = 14 };

extern const struct vtable vtable_allocations;
extern const struct vtable vtable_contexts;
extern const struct vtable vtable_foreign_frees;
extern const struct vtable vtable_frames;
extern const struct vtable vtable_mappings;
extern const struct vtable vtable_markers;
extern const struct vtable vtable_modules;
extern const struct vtable vtable_processes;
extern const struct vtable vtable_samples;
extern const struct vtable vtable_scopes;
extern const struct vtable vtable_smaps;
extern const struct vtable vtable_summary;
extern const struct vtable vtable_threads;
extern const struct vtable vtable_timeline;

/* ---- Values ---- */

/* SQL has no unsigned integers: what is larger than its largest one is that. */
void vtable_put_number(sqlite3_context *out, uint64_t value);
/* NULL where the number is `none`. */
void vtable_put_unless(sqlite3_context *out, uint64_t value, uint64_t none);
/* NULL where text is NULL. */
void vtable_put_text(sqlite3_context *out, const char *text);
/* The same of a text that lasts as long as the session: SQLite makes no copy. */
void vtable_put_lasting(sqlite3_context *out, const char *text);
/* "00ab..", 16 digits */
void vtable_put_hash(sqlite3_context *out, uint64_t hash);
/* "rw-", of PROT_*; mappingstable.c */
void vtable_put_protection(sqlite3_context *out, uint32_t protection);

/* functions.c: bytes(), duration(), path() and so on. 0 or an SQLite error. */
int vtable_add_functions(struct query *query);
/* The innermost function at a node. NULL: it is no code. */
const struct names_frame *vtable_innermost(const struct query *query, uint32_t node);

/* scopes of model.marks. 0 or -1. */
int vtable_pair_scopes(struct query *query);

#endif
