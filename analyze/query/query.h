/* SPDX-License-Identifier: MIT */
/*
 * query.h: SQL over a profile or a recording. A session is an SQLite connection of its own whose
 * tables read the model and the events; nothing is copied, and nothing can be written but temporary
 * tables and views. docs/query.md lists the tables.
 *
 * Called by cli, ask/filters and web/server. A session belongs to one thread and its job, but for
 * query_interrupt(). What SQLite calls back is not ended by jobs: it hands failures on. Memory:
 * SQLite's caches, which are bounded; what it sorts beyond them goes to temporary files, up to half
 * of what their disk has free when the session begins.
 */
#ifndef ANALYZE_QUERY_QUERY_H
#define ANALYZE_QUERY_QUERY_H

#include "analyze/filter/selection.h"
#include "analyze/model/model.h"
#include "analyze/read/run.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"
#include "analyze/rows/table.h"

#include <sqlite3.h>
#include <stdio.h>

/* What is asked. All of it must live as long as the session. */
struct query_source {
    const struct model *whole;           /* of the whole file */
    const struct model *model;           /* of what is selected; may be the same */
    const struct names *names;           /* of the whole model */
    struct timeorder_parts parts;        /* count 0: a profile, which has no events */
    const struct run *run;               /* NULL: the file stands for itself */
    const struct selection *selection;   /* that the model was made with */
    const struct replay_options *replay; /* for its progress; NULL: none */
    bool has_full_names;                 /* C++ names with parameters and template arguments */
};

struct query;
struct rows;
struct table_column;

/* Belongs to the job, which it ends where it cannot be had. */
struct query *query_open(const struct query_source *source);
void query_close(struct query *query); /* early */

/* Ends what is running, and whatever is run until query_resume(). Any thread, signal handlers, too.
 */
void query_interrupt(struct query *query);
void query_resume(struct query *query);

/* Who gets the rows. A function that does not return 0 ends the statement; it may end its job. */
struct query_sink {
    int (*begin)(void *context, sqlite3_stmt *statement); /* its columns are known */
    int (*row)(void *context, sqlite3_stmt *statement);
    int (*end)(void *context); /* also after a failure, if it was begun */
    void *context;
};

/* Runs every statement of the text. 0, QUERY_STOPPED: a sink ended it, or -1: error has one line
 * that says where. Interrupted: -1, "interrupted". */
enum { QUERY_STOPPED = 1 };
int query_run(struct query *query, const char *sql, const struct query_sink *sink,
              struct error *error);

/* The blocks for which an expression of SQL over the columns of `allocations` is true, of all that
 * the source has, whatever its selection; takes a pass. An expression that takes far more steps
 * than there are blocks is given up. 0, or -1: error has one line. */
int query_where(const struct query_source *source, const char *expression,
                struct selection_blocks *found, struct error *error);

/* How many passes over events were begun, and how many rows they handed over: for tests. */
struct query_work {
    unsigned long long passes;
    unsigned long long rows;
};
struct query_work query_work(const struct query *query);

/* From now on no text or blob of it is longer than that, nor a statement longer than 1 MiB; there
 * are no temporary tables and views, and what is sorted puts no more than that into temporary
 * files: for questions of others. */
void query_bound(struct query *query, int text_most, uint64_t spill_most);

/* The tables: the columns that have a name in SQL come first. NULL: there are no more. */
const struct rows *query_table(size_t which);
/* "TEXT", "REAL" or "INTEGER" */
const char *query_type(const struct table_column *column);

/* The tables, for people: their names and what is in them; with a name its columns. Returns -1:
 * there is no such table. */
void query_describe_all(FILE *out);
void query_describe_columns(FILE *out); /* of all tables */
int query_describe(FILE *out, const char *table);

/* Writes all tables, with indices, into a new database at `path`. Where the job ends early the file
 * is not whole. The caller removes what is there before. */
void query_export(const struct query_source *source, const char *path);

/* ---- The rows of a statement as a table (rows/table.h), in any of its forms. Whether writing
 * worked the caller asks ferror() ---- */

/* Start from {0} and set the first two; they may change between statements. */
struct statement_writer {
    struct report report; /* out, options.format */
    struct table_statement options;
    struct table table;
    struct table_column *columns; /* as SQLite names them */
    struct table_cell *cells;
    bool is_begun;
};

/* What query_run() gets. A row ends the statement where out of memory or ferror(). */
struct query_sink statement_sink(struct statement_writer *writer);

/* The format of that name. false: there is none. */
bool statement_format_named(const char *name, enum report_format *format);
#define STATEMENT_FORMATS "table, markdown, csv, tsv or json"

#endif
