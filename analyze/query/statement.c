/* SPDX-License-Identifier: MIT */
/* statement.c: see statement.h. */
#include "analyze/query/statement.h"

#include <stdlib.h>
#include <string.h>

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
