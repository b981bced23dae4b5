/* SPDX-License-Identifier: MIT */
/*
 * table.h: a report as rows and columns, written once, in whatever form was asked for
 * (report.options.format): aligned text, Markdown, CSV (RFC 4180), JSON.
 *
 * Called inside analyze/report. Rows go out as they come: a table may be larger than memory. People
 * see rounded numbers under headings, programs exact ones under stable names.
 *
 *     struct table table = table_open(report, "marks", "Marks", columns, 3);
 *     table_note(&table, "...");                  // before the rows
 *     table_row(&table, (struct table_cell[]){table_number(1), ...});
 *     table_close(&table);
 */
#ifndef ANALYZE_REPORT_TABLE_H
#define ANALYZE_REPORT_TABLE_H

#include "analyze/report/report.h"

enum table_kind {
    TABLE_TEXT,
    TABLE_COUNT,
    TABLE_BYTES,
    TABLE_REAL,     /* one digit behind the point */
    TABLE_PERCENT,  /* real: 0 to 100 */
    TABLE_DURATION, /* ns */
    TABLE_ADDRESS,
    TABLE_HASH,
    TABLE_FRAME, /* a function and its place */
    TABLE_PATH,  /* a call path, from the allocating function on */
};

struct table_column {
    const char *name;    /* in CSV and JSON; NULL: for people only */
    const char *heading; /* for people; NULL: for programs only */
    enum table_kind kind;
    unsigned char width; /* of text; 0: as usual for the kind */
};

struct table_cell {
    bool is_known; /* false: "-", an empty field, null */
    uint64_t number;
    double real;
    const char *text;
    const struct names_frame *frame;
    uint32_t path; /* a node; 0: no call path was recorded */
    enum table_cell_note { TABLE_EXACT, TABLE_BELOW, TABLE_ABOVE } note; /* "<", ">" before it */
};

struct table {
    const struct report *report;
    const char *name;
    const struct table_column *columns;
    size_t count;
    bool is_record; /* one row, for people a line for each of its values */
    bool is_begun;  /* rows may follow: headings are there */
    size_t rows;
    uint64_t hidden; /* rows that a limit left out: table_close() says so */
};

struct table table_open(const struct report *report, const char *name, const char *title,
                        const struct table_column *columns, size_t count);
struct table table_open_record(const struct report *report, const char *name, const char *title,
                               const struct table_column *columns, size_t count);
__attribute__((format(printf, 2, 3))) void table_note(struct table *table, const char *format, ...);
void table_row(struct table *table, const struct table_cell *cells);
void table_close(struct table *table);

static inline struct table_cell table_none(void) {
    return (struct table_cell){0};
}
static inline struct table_cell table_number(uint64_t number) {
    return (struct table_cell){.is_known = true, .number = number};
}
static inline struct table_cell table_real(double real) {
    return (struct table_cell){.is_known = true, .real = real};
}
static inline struct table_cell table_share(uint64_t part, uint64_t whole) {
    return (struct table_cell){.is_known = whole != 0,
                               .real = whole != 0 ? 100.0 * (double)part / (double)whole : 0};
}
/* NULL: not known. The text must live until the row is written. */
static inline struct table_cell table_text(const char *text) {
    return (struct table_cell){.is_known = text != NULL, .text = text};
}
static inline struct table_cell table_frame(const struct names_frame *frame) {
    return (struct table_cell){.is_known = frame != NULL, .frame = frame};
}
static inline struct table_cell table_path(uint32_t node) {
    return (struct table_cell){.is_known = true, .path = node};
}

static inline enum table_kind table_main_kind(enum metric metric) {
    return metric_main_is_bytes(metric) ? TABLE_BYTES : TABLE_COUNT;
}
static inline enum table_kind table_side_kind(enum metric metric) {
    return metric_side_is_bytes(metric) ? TABLE_BYTES : TABLE_COUNT;
}

/* Drawings for people stand between these, under a title (NULL: none). */
void table_drawing_begin(const struct report *report, const char *title);
void table_drawing_end(const struct report *report);

/* Around all tables of one output. table_document_open(): 0, or -1: out of memory. */
struct table_document {
    struct jsonwriter *json; /* of REPORT_JSON */
    size_t tables;
};
int table_document_open(struct table_document *document, const struct report *report);
void table_document_close(struct table_document *document, const struct report *report);

/* tabletext.c and tabledata.c: headings and one row in each form. */
void tabletext_headings(const struct table *table);
void tabletext_row(const struct table *table, const struct table_cell *cells);
void tabletext_markdown_headings(const struct table *table);
void tabletext_markdown_row(const struct table *table, const struct table_cell *cells);
void tabledata_csv_headings(const struct table *table);
void tabledata_csv_row(const struct table *table, const struct table_cell *cells);
void tabletext_escaped(FILE *out, const char *text); /* of Markdown */
void tabledata_json_row(const struct table *table, const struct table_cell *cells);

#endif
