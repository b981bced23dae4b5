/* SPDX-License-Identifier: MIT */
/* table.c: what all forms of a table share. See table.h. */
#include "analyze/rows/table.h"

#include "analyze/base/job.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/number.h"
#include "analyze/rows/safetext.h"
#include "analyze/rows/style.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>

static enum report_format format_of(const struct table *table) {
    return table->json != NULL ? REPORT_JSON : table->report->options.format;
}

/* ---- All tables of an output ---- */

static void put_document(struct jsonwriter *json, const struct report *report) {
    const struct model *model = report->model;
    jsonwriter_number(json, "version", 1);
    jsonwriter_string(json, "source", report->source);
    jsonwriter_string(json, "program", model->header.executable);
    jsonwriter_string(json, "selected", report->selected);
    jsonwriter_number(json, "from_ns", model->from_ns);
    jsonwriter_number(json, "to_ns", model->to_ns < model->now_ns ? model->to_ns : model->now_ns);
    tabledata_json_warnings(json, report);
}

void table_document_open(struct table_document *document, const struct report *report) {
    *document = (struct table_document){0};
    if (report->options.format == REPORT_JSON) {
        document->json = jsonwriter_begin(report->out, JSONWRITER_INDENTED);
        jsonwriter_map(document->json, NULL);
        put_document(document->json, report);
        jsonwriter_array(document->json, "reports");
    }
}

void table_document_close(struct table_document *document, const struct report *report) {
    if (document->json != NULL) {
        jsonwriter_end_array(document->json);
        jsonwriter_end_map(document->json);
        fputc('\n', report->out);
    }
    *document = (struct table_document){0};
}

static void put_markdown_title(const struct report *report, const char *title) {
    fputs(report->document != NULL && report->document->tables != 0 ? "\n## " : "## ", report->out);
    tabletext_escaped(report->out, title);
    fputc('\n', report->out);
}

void table_drawing_begin(const struct report *report, const char *title) {
    bool is_markdown = report->options.format == REPORT_MARKDOWN;
    if (title != NULL && is_markdown) {
        put_markdown_title(report, title);
    } else if (title != NULL) {
        style_heading(report, title);
    }
    fputs(is_markdown ? "\n```text\n" : "", report->out);
}

void table_drawing_end(const struct report *report) {
    if (report->options.format == REPORT_MARKDOWN) {
        fputs("```\n", report->out);
        if (report->document != NULL) {
            report->document->tables++;
        }
    }
}

/* ---- One table ---- */

static void begin_json(const struct table *table, const char *title) {
    jsonwriter_map(table->json, NULL);
    jsonwriter_string(table->json, "name", table->name);
    jsonwriter_string(table->json, "title", title);
    jsonwriter_array(table->json, "notes");
}

struct table table_open(const struct report *report, const char *name, const char *title,
                        const struct table_column *columns, size_t count) {
    struct table table = {.report = report, .name = name, .columns = columns, .count = count};
    switch (report->options.format) {
    case REPORT_JSON:
        table.json = report->document->json;
        begin_json(&table, title);
        break;
    case REPORT_CSV:
    case REPORT_TSV:
        if (report->document != NULL && report->document->tables != 0) {
            fputs(report->options.format == REPORT_CSV ? "\r\n" : "\n", report->out);
        }
        break;
    case REPORT_MARKDOWN:
        put_markdown_title(report, title);
        break;
    case REPORT_SINK:
        report->sink->open(report->sink->context, &table, title);
        break;
    default:
        style_heading(report, title);
        break;
    }
    if (report->document != NULL) {
        report->document->tables++;
    }
    return table;
}

struct table table_open_record(const struct report *report, const char *name, const char *title,
                               const struct table_column *columns, size_t count) {
    struct table table = table_open(report, name, title, columns, count);
    table.is_record = true;
    return table;
}

static void put_note(const struct table *table, const char *text) {
    const struct report *report = table->report;
    switch (format_of(table)) {
    case REPORT_JSON:
        jsonwriter_string(table->json, NULL, text);
        break;
    case REPORT_CSV:
    case REPORT_TSV:
        break;
    case REPORT_SINK:
        report->sink->note(report->sink->context, text);
        break;
    case REPORT_MARKDOWN:
        fputc('\n', report->out);
        tabletext_escaped(report->out, text);
        fputc('\n', report->out);
        break;
    default:
        fputs(style_on(report, STYLE_DIM), report->out);
        style_lines(report, text, 0);
        fprintf(report->out, "%s\n", style_off(report));
        break;
    }
}

void table_note(struct table *table, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) >= 0) {
        put_note(table, make_safe(text));
        free(text);
    }
    va_end(arguments);
}

/* Headings come with the first row: of an empty table people see no more than that. */
static void begin_rows(struct table *table) {
    switch (format_of(table)) {
    case REPORT_JSON:
        jsonwriter_end_array(table->json);
        jsonwriter_array(table->json, "rows");
        break;
    case REPORT_CSV:
    case REPORT_TSV:
        tabledata_fields_headings(table);
        break;
    case REPORT_SINK:
        break;
    case REPORT_MARKDOWN:
        tabletext_markdown_headings(table);
        break;
    default:
        tabletext_headings(table);
        break;
    }
    table->is_begun = true;
}

void table_row(struct table *table, const struct table_cell *cells) {
    if (!table->is_begun) {
        begin_rows(table);
    }
    table->rows++;
    switch (format_of(table)) {
    case REPORT_JSON:
        tabledata_json_row(table, cells);
        break;
    case REPORT_CSV:
    case REPORT_TSV:
        tabledata_fields_row(table, cells);
        break;
    case REPORT_SINK:
        table->report->sink->row(table->report->sink->context, cells);
        break;
    default:
        if (table->widths != NULL) {
            tabletext_keep(table, cells);
        } else if (format_of(table) == REPORT_MARKDOWN) {
            tabletext_markdown_row(table, cells);
        } else {
            tabletext_row(table, cells);
        }
        break;
    }
}

/* What the table lacks, for people. */
static void table_put_rest(const struct table *table) {
    FILE *out = table->report->out;
    const char *around = format_of(table) == REPORT_MARKDOWN ? "\n" : "";
    if (table->rows == 0 && table->hidden == 0) {
        fprintf(out, "%snothing\n", around);
    } else if (table->hidden != 0) {
        struct number hidden;
        bool is_told = table->hidden_text != NULL;
        fprintf(out, "%s%s(%s%s)%s\n", around, style_on(table->report, STYLE_DIM),
                is_told ? table->hidden_text : number_count(&hidden, table->hidden),
                is_told ? "" : " more not shown", style_off(table->report));
    }
}

void table_close(struct table *table) {
    bool for_people = report_is_for_people(table->report);
    if (!table->is_begun && !(for_people && table->rows == 0)) {
        begin_rows(table);
    }
    if (for_people) {
        table_put_rest(table);
    } else if (format_of(table) == REPORT_JSON) {
        jsonwriter_end_array(table->json);
        jsonwriter_number(table->json, "not_shown", table->hidden);
        jsonwriter_end_map(table->json);
    }
}

struct table table_begin_member(const struct report *report, struct jsonwriter *json,
                                const char *name, const char *title,
                                const struct table_column *columns, size_t count) {
    if (json == NULL) {
        return table_open(report, name, title, columns, count);
    }
    jsonwriter_array(json, name);
    return (struct table){
        .report = report, .json = json, .columns = columns, .count = count, .is_begun = true};
}

void table_end_member(struct table *table) {
    if (table->json == NULL) {
        table_close(table);
    } else {
        jsonwriter_end_array(table->json);
    }
}

/* ---- The rows of a statement ---- */

struct table table_open_statement(const struct report *report,
                                  const struct table_statement *statement,
                                  const struct table_column *columns, size_t count) {
    struct table table = {.report = report, .columns = columns, .count = count, .is_begun = true};
    if (report->options.format == REPORT_SINK) {
        report->sink->open(report->sink->context, &table, NULL);
    } else if (report_is_for_people(report)) {
        tabletext_begin(&table, statement);
    } else if (report->options.format == REPORT_JSON) {
        table.json = jsonwriter_begin(report->out, JSONWRITER_INDENTED);
        jsonwriter_array(table.json, NULL);
    } else if (statement->has_header) {
        tabledata_fields_headings(&table);
    }
    return table;
}

void table_close_statement(struct table *table) {
    if (table->widths != NULL) {
        tabletext_end(table);
    } else if (table->json != NULL) {
        jsonwriter_end_array(table->json);
        job_undo_now(table->json);
        fputc('\n', table->report->out);
    }
    *table = (struct table){0};
}
