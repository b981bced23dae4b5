/* SPDX-License-Identifier: MIT */
/*
 * statement.h: the rows of a statement of SQL as a table (rows/table.h), in any of its forms.
 *
 * Called by cli. One thread. Whether writing worked the caller asks ferror().
 */
#ifndef ANALYZE_QUERY_STATEMENT_H
#define ANALYZE_QUERY_STATEMENT_H

#include "analyze/query/query.h"
#include "analyze/rows/table.h"

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
