/* SPDX-License-Identifier: MIT */
/*
 * vtable.h: what the tables of a session share: how a table is described, its session, and how
 * SQLite connects to it. Nobody else's business than that of analyze/query.
 *
 * A table is a constant: rows (rows/rows.h) and how SQLite comes to them. What lies in memory is
 * read by one module (vtable.c), the others have a module of their own.
 */
#ifndef ANALYZE_QUERY_VTABLE_H
#define ANALYZE_QUERY_VTABLE_H

#include "analyze/base/error.h"
#include "analyze/query/query.h"
#include "analyze/rows/rows.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- spill.c: the temporary files of one SQLite connection (sorts, temporary tables), which
 * together grow up to a limit: a layer before SQLite's own access to files, which counts. It
 * belongs to the thread of its session ---- */

struct spill {
    sqlite3_vfs vfs; /* SQLite's own, but for xOpen */
    sqlite3_vfs *own;
    char name[32];
    char folder[256]; /* where the files are, as far as can be known */
    uint64_t bytes_most;
    uint64_t bytes; /* of all that are open */
    bool was_full;  /* a write was refused; whoever reads it resets it */
};

/* As sqlite3_open(), but with half of what the disk of the temporary files has free for them. The
 * spill is the connection's until that is closed. An SQLite error, or SQLITE_OK. */
int spill_open(struct spill *spill, const char *path, sqlite3 **db);
/* No more than that from now on. */
void spill_limit(struct spill *spill, uint64_t bytes_most);

/* ---- Tables ---- */

/* Where SQLite is in a table; what the table needs besides stands behind it. */
struct vtable_cursor {
    sqlite3_vtab_cursor base;
    const void *record; /* of the present row, until the next one; NULL: at the end */
    sqlite3_int64 id;   /* its rowid: 1, 2, ... unless next() says otherwise */
};

struct vtable {
    const struct rows *rows;    /* name, columns; where they are arrays the rows themselves */
    const char *const *indices; /* what CREATE INDEX says in a written file; NULL ends them */
    size_t cursor_size;         /* of a struct that begins with a vtable_cursor */
    /* SQLite's xBestIndex; xFilter and xNext, of a cursor that is all zero before the first of them
     * (NULL: there is nothing to begin); and what a cursor has is freed (NULL: nothing). */
    int (*plan)(sqlite3_vtab *view, sqlite3_index_info *info);
    int (*begin)(struct vtable_cursor *cursor, int number, const char *text, int argc,
                 sqlite3_value **argv);
    int (*next)(struct vtable_cursor *cursor);
    void (*end)(struct vtable_cursor *cursor);
    /* Arrays only: all rows, those with the same value in this column next to each other, so that
     * who groups by it need not sort; they last as long as the session. NULL: rows are not had so;
     * else NULL is no memory. */
    const uint32_t *(*grouped)(const struct query *query);
    int grouped_column;
};

/* What SQLite gets with a module: whose it is. */
struct vtable_binding {
    struct query *query;
    const struct vtable *table;
};

enum { VTABLES = 15 };
extern const struct vtable *const vtable_list[]; /* NULL ends it */
extern const sqlite3_module vtable_module;       /* of all of them */

struct query {
    struct query_source source;
    sqlite3 *db;
    struct spill spill; /* its temporary files */
    bool only_reads;    /* no temporary tables and views either */
    atomic_bool interrupted;
    atomic_ullong passes;
    atomic_ullong rows;
    struct rows_of of; /* the same, for rows.h */
    struct vtable_binding bindings[VTABLES];
    struct callpaths *callpaths;
};

struct vtable_view {
    sqlite3_vtab base;
    struct query *query;
    const struct vtable *table;
    unsigned char columns[64]; /* by the number that SQLite gives a column: its place in the rows */
};

static inline struct query *vtable_query(const struct vtable_cursor *cursor) {
    return ((const struct vtable_view *)cursor->base.pVtab)->query;
}

/* In plan(), of tables that find rows by their first column: whether it is to equal something,
 * which is argv[0] of begin() then, with number 1 and text "NAME=". */
bool vtable_ask_equal(sqlite3_index_info *info, const struct vtable *table);

/* The table's error from now on: SQLITE_ERROR is returned. */
int vtable_fail(sqlite3_vtab *view, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "CREATE TABLE SCHEMA" "NAME(...)", the schema "main." or empty; the caller frees it by
 * sqlite3_free(). NULL: no memory. */
char *vtable_declaration(const struct vtable *table, const char *schema);

extern const struct vtable vtable_allocations;
extern const struct vtable vtable_frames;
extern const struct vtable vtable_mappings;
extern const struct vtable vtable_samples;
extern const struct vtable vtable_smaps;

/* ---- Values ---- */

/* NULL where text is NULL. */
void vtable_put_text(sqlite3_context *out, const char *text);
/* The same of a text that lasts as long as the session: SQLite makes no copy. */
void vtable_put_lasting(sqlite3_context *out, const char *text);

/* ---- callpaths.c: names of functions and call paths as texts, and the SQL functions of a session.
 * A query may ask for the same ones millions of times: names are made once; of the paths the latest
 * are kept. From the session's thread ---- */

/* Belongs to the job; what it kept goes with callpaths_free(). */
struct callpaths *callpaths_new(void);
void callpaths_free(struct callpaths *paths);

/* What to show of a frame, in the form that the session wants; lasts as long as the session. NULL:
 * out of memory. */
const char *callpaths_name(const struct query *query, const struct names_frame *frame);

/* The functions of a node's path, outermost first, ';' between them, into out. */
void callpaths_put(const struct query *query, uint32_t node, sqlite3_context *out);

/* The rows of the model's contexts, those with the same path next to each other. NULL: out of
 * memory. */
const uint32_t *callpaths_grouped(const struct query *query);

/* bytes(), duration(), path() and so on. 0 or an SQLite error. */
int callpaths_add_functions(struct query *query);

/* ---- Rows of a pass over events: the pass hands them out when it comes to them, a cursor asks for
 * the next one. So the pass runs in a thread of its own, a few batches ahead, and ends when nobody
 * wants rows any more. Memory: those batches, whatever the pass finds. start, next and close belong
 * to one thread; put to the producer ---- */

struct rowqueue;

/* Runs in the thread inside, as a job whose memory lasts as long as the queue; calls rowqueue_put()
 * for each row and returns soon after that does not return 0, or after rowqueue_cancel() became
 * true. What ends its job is rowqueue_error(). */
typedef void (*rowqueue_producer)(struct rowqueue *queue, void *argument);

/* NULL: no memory or no thread. */
struct rowqueue *rowqueue_start(size_t row_size, rowqueue_producer produce, void *argument);

/* 0; 1: nobody wants more. */
int rowqueue_put(struct rowqueue *queue, const void *row);
const atomic_bool *rowqueue_cancel(const struct rowqueue *queue);

/* 1: *row is there until the next call; 0: that was all; -1: *interrupted became true meanwhile. */
int rowqueue_next(struct rowqueue *queue, const atomic_bool *interrupted, const void **row);
/* After rowqueue_next() returned 0. NULL: nothing went wrong. */
const struct error *rowqueue_error(const struct rowqueue *queue);

/* Also before the end. NULL is allowed. */
void rowqueue_close(struct rowqueue *queue);

/* next() of a cursor that has a queue. */
int vtable_next_row(struct vtable_cursor *cursor, struct rowqueue *queue);
/* The options of a pass for a session's table. */
struct replay_options vtable_replay(const struct query *query, const struct rowqueue *queue);

#endif
