/* SPDX-License-Identifier: MIT */
/* resulttable.c: see resulttable.h. */
#include "analyze/query/resulttable.h"

#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"

#include <stdlib.h>
#include <string.h>

/* Characters, not bytes. */
static size_t width_of(const char *text) {
    size_t width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

/* Where the character begins that has so many before it. */
static size_t bytes_of(const char *text, size_t characters) {
    size_t at = 0;
    for (; text[at] != '\0'; at++) {
        if (((unsigned char)text[at] & 0xc0) != 0x80 && characters-- == 0) {
            break;
        }
    }
    return at;
}

/* ---- Cells ---- */

static bool is_number(int type) {
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static char *grouped(sqlite3_int64 value) {
    struct number number;
    char *text;
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
    number_count(&number, size);
    return asprintf(&text, "%s%s", value < 0 ? "-" : "", number.text) >= 0 ? text : NULL;
}

/* Text on one line, without what a terminal would obey; Markdown's own sign is escaped. */
static char *plain(const char *from, enum result_format format) {
    char *copy = malloc(strlen(from) * 2 + 1);
    char *to = copy;
    for (; copy != NULL && *from != '\0'; from++) {
        if (*from == '|' && format == RESULT_MARKDOWN) {
            *to++ = '\\';
        }
        *to++ = *from;
    }
    if (copy != NULL) {
        *to = '\0';
        make_safe(copy);
    }
    return copy;
}

static void cut(char *text, size_t most) {
    static const char dots[] = "...";
    if (most >= sizeof dots && width_of(text) > most) {
        memcpy(text + bytes_of(text, most - 3), dots, sizeof dots);
    }
}

/* The caller frees it. NULL: out of memory. */
static char *cell_of(const struct result_options *options, sqlite3_stmt *statement, int column) {
    int type = sqlite3_column_type(statement, column);
    const char *text;
    char *cell;
    if (type == SQLITE_NULL) {
        return strdup("NULL");
    }
    if (type == SQLITE_INTEGER && options->is_grouped) {
        return grouped(sqlite3_column_int64(statement, column));
    }
    text = (const char *)sqlite3_column_text(statement, column);
    cell = text != NULL ? plain(text, options->format) : NULL;
    if (cell != NULL && !is_number(type)) {
        cut(cell, options->cell_most);
    }
    return cell;
}

/* ---- Lines ---- */

static void put_cell(const struct result_table *table, const struct result_options *options,
                     int column, const char *cell) {
    size_t width = width_of(cell);
    int padding = width < table->widths[column] ? (int)(table->widths[column] - width) : 0;
    bool is_last = column + 1 == table->columns;
    bool is_markdown = options->format == RESULT_MARKDOWN;
    fputs(is_markdown ? "| " : column != 0 ? "  " : "", options->out);
    if (table->is_number[column]) {
        fprintf(options->out, "%*s%s", padding, "", cell);
    } else if (is_last && !is_markdown) {
        fputs(cell, options->out);
    } else {
        fprintf(options->out, "%s%*s", cell, padding, "");
    }
    fputs(is_last ? is_markdown ? " |\n" : "\n" : is_markdown ? " " : "", options->out);
}

/* Below the heading. */
static void put_rule(const struct result_table *table, const struct result_options *options) {
    bool is_markdown = options->format == RESULT_MARKDOWN;
    for (int column = 0; column < table->columns; column++) {
        size_t width = table->widths[column];
        fputs(is_markdown ? "| " : column != 0 ? "  " : "", options->out);
        for (size_t i = 0; i < width; i++) {
            bool is_right = is_markdown && table->is_number[column] && i + 1 == width;
            fputc(is_right ? ':' : '-', options->out);
        }
        fputs(is_markdown ? " " : "", options->out);
    }
    fputs(is_markdown ? "|\n" : "\n", options->out);
}

/* ---- Rows ---- */

static int keep(struct result_table *table, char *cell, int column, bool is_narrow) {
    char **grown;
    size_t width;
    if (cell == NULL) {
        return -1;
    }
    if ((table->cell_count & (table->cell_count - 1)) == 0) {
        size_t capacity = table->cell_count != 0 ? table->cell_count * 2 : 1;
        grown = reallocarray(table->cells, capacity, sizeof *grown);
        if (grown == NULL) {
            free(cell);
            return -1;
        }
        table->cells = grown;
    }
    table->cells[table->cell_count++] = cell;
    width = width_of(cell);
    if (!is_narrow && width > table->widths[column]) {
        table->widths[column] = width;
    }
    return 0;
}

int result_table_begin(struct result_table *table, const struct result_options *options,
                       sqlite3_stmt *statement) {
    enum { RULE = 3 }; /* Markdown wants so many dashes */
    table->columns = sqlite3_column_count(statement);
    table->widths = calloc((size_t)table->columns, sizeof *table->widths);
    table->is_number = calloc((size_t)table->columns, sizeof *table->is_number);
    if (table->widths == NULL || table->is_number == NULL) {
        return -1;
    }
    for (int i = 0; i < table->columns; i++) {
        const char *name = sqlite3_column_name(statement, i);
        table->is_number[i] = true;
        table->widths[i] = options->format == RESULT_MARKDOWN ? RULE : 1;
        if (keep(table, name != NULL ? plain(name, options->format) : NULL, i,
                 !options->has_header) != 0) {
            return -1;
        }
    }
    table->rows = 1;
    return 0;
}

/* Writes what was kept: from now on widths are what they are. */
static void settle(struct result_table *table, const struct result_options *options) {
    size_t columns = (size_t)table->columns;
    for (size_t row = options->has_header ? 0 : 1; row < table->rows; row++) {
        for (size_t column = 0; column < columns; column++) {
            put_cell(table, options, (int)column, table->cells[row * columns + column]);
        }
        if (row == 0) {
            put_rule(table, options);
        }
    }
    for (size_t i = 0; i < table->cell_count; i++) {
        free(table->cells[i]);
    }
    table->cell_count = 0;
    table->is_written = true;
}

int result_table_row(struct result_table *table, const struct result_options *options,
                     sqlite3_stmt *statement) {
    for (int column = 0; column < table->columns; column++) {
        char *cell = cell_of(options, statement, column);
        int type = sqlite3_column_type(statement, column);
        if (cell == NULL) {
            return -1;
        }
        if (table->is_written) {
            put_cell(table, options, column, cell);
            free(cell);
            continue;
        }
        table->is_number[column] &= is_number(type) || type == SQLITE_NULL;
        if (keep(table, cell, column, false) != 0) {
            return -1;
        }
    }
    if (!table->is_written && ++table->rows == RESULT_TABLE_KEPT) {
        settle(table, options);
    }
    return 0;
}

void result_table_end(struct result_table *table, const struct result_options *options) {
    if (table->widths != NULL && table->is_number != NULL && !table->is_written &&
        table->cell_count == table->rows * (size_t)table->columns) {
        settle(table, options);
    }
    for (size_t i = 0; i < table->cell_count; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    free(table->widths);
    free(table->is_number);
    *table = (struct result_table){0};
}
