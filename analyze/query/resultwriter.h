/* SPDX-License-Identifier: MIT */
/*
 * resultwriter.h: the rows of a statement as text: a table, Markdown, CSV, TSV or JSON.
 *
 * Called by cli. One thread. Rows are written as they come; a table keeps the first ones until it
 * knows how wide its columns are. Whether writing worked the caller asks ferror().
 */
#ifndef ANALYZE_QUERY_RESULTWRITER_H
#define ANALYZE_QUERY_RESULTWRITER_H

#include "analyze/query/query.h"

enum result_format { RESULT_TABLE, RESULT_MARKDOWN, RESULT_CSV, RESULT_TSV, RESULT_JSON };

struct result_options {
    FILE *out;
    enum result_format format;
    bool has_header;
    bool is_grouped;  /* tables: 12,903,424 */
    size_t cell_most; /* tables: text is cut after so many characters; 0: never */
};

struct result_writer;

/* NULL: out of memory. */
struct result_writer *result_writer_open(const struct result_options *options);
void result_writer_close(struct result_writer *writer); /* NULL is allowed */
/* From the next statement on. */
void result_writer_set(struct result_writer *writer, const struct result_options *options);
/* What query_run() gets. A row ends the statement where out of memory or ferror(). */
struct query_sink result_writer_sink(struct result_writer *writer);

/* The format of that name. false: there is none. */
bool result_format_named(const char *name, enum result_format *format);
#define RESULT_FORMATS "table, markdown, csv, tsv or json"

#endif
