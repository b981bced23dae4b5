/* SPDX-License-Identifier: MIT */
/* resultwriter.c: see resultwriter.h. */
#include "analyze/query/resultwriter.h"

#include "analyze/query/resulttable.h"
#include "analyze/report/csvtext.h"
#include "analyze/rows/jsonwriter.h"

#include "analyze/rows/safetext.h"

#include <stdlib.h>
#include <string.h>

struct result_writer {
    struct result_options options;
    struct result_table table;
    struct jsonwriter *json;
};

/* ---- CSV (RFC 4180) and TSV ---- */

/* What would end a field or a line is written as C does. */
static void put_tsv(FILE *out, const char *text) {
    while (*(text = put_safe_until(out, text, "\t\n\r\\")) != '\0') {
        fputc('\\', out);
        fputc(*text == '\t' ? 't' : *text == '\n' ? 'n' : *text == '\r' ? 'r' : '\\', out);
        text++;
    }
}

/* is_number: it was written by us, so it may begin with a minus. */
static void put_field(const struct result_options *options, int column, const char *text,
                      bool is_number) {
    bool is_csv = options->format == RESULT_CSV;
    if (column != 0) {
        fputc(is_csv ? ',' : '\t', options->out);
    }
    if (text == NULL || is_number) {
        fputs(text != NULL ? text : "", options->out);
    } else {
        (is_csv ? csvtext_put_short : put_tsv)(options->out, text);
    }
}

static void put_heading(const struct result_options *options, sqlite3_stmt *statement) {
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        put_field(options, i, sqlite3_column_name(statement, i), false);
    }
    fputs(options->format == RESULT_CSV ? "\r\n" : "\n", options->out);
}

static void put_fields(const struct result_options *options, sqlite3_stmt *statement) {
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        int type = sqlite3_column_type(statement, i);
        put_field(options, i, (const char *)sqlite3_column_text(statement, i),
                  type == SQLITE_INTEGER || type == SQLITE_FLOAT);
    }
    fputs(options->format == RESULT_CSV ? "\r\n" : "\n", options->out);
}

/* ---- JSON ---- */

static void put_blob(struct jsonwriter *json, const char *name, sqlite3_stmt *statement,
                     int column) {
    const unsigned char *bytes = sqlite3_column_blob(statement, column);
    size_t size = (size_t)sqlite3_column_bytes(statement, column);
    char *text = malloc(size * 2 + 1);
    for (size_t i = 0; text != NULL && i < size; i++) {
        sqlite3_snprintf(3, text + 2 * i, "%02x", bytes[i]);
    }
    if (text != NULL) {
        text[size * 2] = '\0';
    }
    jsonwriter_string(json, name, text);
    free(text);
}

static void put_object(struct jsonwriter *json, sqlite3_stmt *statement) {
    jsonwriter_map(json, NULL);
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        const char *name = sqlite3_column_name(statement, i);
        switch (sqlite3_column_type(statement, i)) {
        case SQLITE_INTEGER:
            jsonwriter_integer(json, name, sqlite3_column_int64(statement, i));
            break;
        case SQLITE_FLOAT:
            jsonwriter_double(json, name, sqlite3_column_double(statement, i));
            break;
        case SQLITE_BLOB:
            put_blob(json, name, statement, i);
            break;
        default:
            jsonwriter_string(json, name, (const char *)sqlite3_column_text(statement, i));
            break;
        }
    }
    jsonwriter_end_map(json);
}

/* ---- All of them ---- */

static bool is_table(const struct result_writer *writer) {
    return writer->options.format == RESULT_TABLE || writer->options.format == RESULT_MARKDOWN;
}

static int begin(void *context, sqlite3_stmt *statement) {
    struct result_writer *writer = context;
    if (is_table(writer)) {
        return result_table_begin(&writer->table, &writer->options, statement);
    }
    if (writer->options.format == RESULT_JSON) {
        writer->json = jsonwriter_open(writer->options.out, JSONWRITER_INDENTED);
        if (writer->json == NULL) {
            return -1;
        }
        jsonwriter_array(writer->json, NULL);
    } else if (writer->options.has_header) {
        put_heading(&writer->options, statement);
    }
    return 0;
}

static int row(void *context, sqlite3_stmt *statement) {
    struct result_writer *writer = context;
    if (is_table(writer)) {
        return result_table_row(&writer->table, &writer->options, statement);
    }
    if (writer->json != NULL) {
        put_object(writer->json, statement);
    } else {
        put_fields(&writer->options, statement);
    }
    return ferror(writer->options.out);
}

static int end(void *context) {
    struct result_writer *writer = context;
    if (is_table(writer)) {
        result_table_end(&writer->table, &writer->options);
    } else if (writer->json != NULL) {
        jsonwriter_end_array(writer->json);
        jsonwriter_close(writer->json);
        writer->json = NULL;
        fputc('\n', writer->options.out);
    }
    return 0;
}

struct query_sink result_writer_sink(struct result_writer *writer) {
    return (struct query_sink){.begin = begin, .row = row, .end = end, .context = writer};
}

struct result_writer *result_writer_open(const struct result_options *options) {
    struct result_writer *writer = calloc(1, sizeof *writer);
    if (writer != NULL) {
        writer->options = *options;
    }
    return writer;
}

void result_writer_set(struct result_writer *writer, const struct result_options *options) {
    writer->options = *options;
}

void result_writer_close(struct result_writer *writer) {
    free(writer);
}

bool result_format_named(const char *name, enum result_format *format) {
    static const char *const names[] = {[RESULT_TABLE] = "table",
                                        [RESULT_MARKDOWN] = "markdown",
                                        [RESULT_CSV] = "csv",
                                        [RESULT_TSV] = "tsv",
                                        [RESULT_JSON] = "json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            *format = (enum result_format)i;
            return true;
        }
    }
    return false;
}
