/* SPDX-License-Identifier: MIT */
/* resulttable.h: rows as a table or Markdown, their columns below each other. Used by resultwriter
 * alone. */
#ifndef ANALYZE_QUERY_RESULTTABLE_H
#define ANALYZE_QUERY_RESULTTABLE_H

#include "analyze/query/resultwriter.h"

/* Rows that are kept to see how wide columns are; those that follow may be wider. */
enum { RESULT_TABLE_KEPT = 1000 };

/* Start from {0}. */
struct result_table {
    char **cells; /* row by row, the heading first */
    size_t cell_count;
    size_t rows; /* kept, the heading included */
    int columns;
    size_t *widths;
    bool *is_number; /* by column: only numbers so far */
    bool is_written; /* widths are settled */
};

/* Each returns 0, or -1: out of memory. */
int result_table_begin(struct result_table *table, const struct result_options *options,
                       sqlite3_stmt *statement);
int result_table_row(struct result_table *table, const struct result_options *options,
                     sqlite3_stmt *statement);
void result_table_end(struct result_table *table, const struct result_options *options);

#endif
