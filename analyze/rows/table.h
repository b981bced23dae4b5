/* SPDX-License-Identifier: MIT */
/*
 * table.h: rows and columns, written once, in whatever form was asked for (report.options.format):
 * aligned text, Markdown, CSV (RFC 4180), TSV, JSON.
 *
 * Called by whoever has rows to show: reports, differences, SQL. Rows go out as they come: a table
 * may be larger than memory. People see rounded numbers under headings, programs exact ones under
 * stable names. Where the rows of a thing come from: rows.h.
 *
 *     struct table table = table_open(report, "marks", "Marks", columns, 3);
 *     table_note(&table, "...");                  // before the rows
 *     table_row(&table, (struct table_cell[]){table_number(1), ...});
 *     table_close(&table);
 */
#ifndef ANALYZE_ROWS_TABLE_H
#define ANALYZE_ROWS_TABLE_H

#include "analyze/rows/report.h"

/* The type of a column's values, and their unit. */
enum table_kind {
    TABLE_TEXT,
    TABLE_WORD, /* text of ours, one of a few: no quotes in CSV */
    TABLE_COUNT,
    TABLE_BYTES,
    TABLE_SIGNED, /* a count that may be below zero */
    TABLE_CHANGE, /* the same of a count that grew or shrank: "+6" */
    TABLE_BYTES_CHANGE,
    TABLE_REAL,     /* one digit behind the point */
    TABLE_PERCENT,  /* real: 0 to 100 */
    TABLE_DURATION, /* ns */
    TABLE_ADDRESS,
    TABLE_HASH,
    TABLE_FRAME, /* a function and its place */
    TABLE_PATH,  /* a call path, from the allocating function on */
    TABLE_ANY,   /* each cell says what it is */
};

struct table_cell {
    bool is_known; /* false: "-", an empty field, null */
    uint64_t number;
    double real;
    const char *text; /* of a number: how it is spelled, whatever its kind says */
    const struct names_frame *frame;
    uint32_t path; /* a node; 0: no call path was recorded */
    enum table_cell_note { TABLE_EXACT, TABLE_BELOW, TABLE_ABOVE } note; /* "<", ">" before it */
    enum table_kind kind; /* where the column's is TABLE_ANY */
    bool is_owned;        /* text was made by malloc() for who asked for the cell */
};

/* Where a column is shown, but for SQL, which has those that have a name there. */
enum table_place {
    TABLE_REPORT = 1,
    TABLE_PAGE = 2,
    TABLE_DOCUMENT =
        4,        /* the one document of all that a file holds (`memtrace report --format json`) */
    TABLE_SQL = 8 /* nowhere else */
};

struct rows_of;
struct table_column {
    const char *name;    /* in CSV and JSON; NULL: for people only */
    const char *heading; /* for people; NULL: for programs only */
    enum table_kind kind;
    unsigned char width; /* of text; 0: as usual for the kind */

    /* Columns of what rows.h lists, besides. */
    const char *sql;     /* its name in SQL; NULL: SQL has it not */
    const char *about;   /* what SQL's schema says of it */
    unsigned short size; /* where the value is a field of the record: of this size, there */
    unsigned place;      /* else size is 0, and cell() makes it */
    struct table_cell (*cell)(const struct rows_of *of, const void *record);
    enum table_none { TABLE_NEVER, TABLE_ZERO, TABLE_MOST } none; /* the number that is unknown */
    unsigned char only; /* enum table_place, some of them; 0: everywhere */
};

struct table_widths;

struct table {
    const struct report *report;
    const char *name;
    struct jsonwriter *json; /* of REPORT_JSON */
    const struct table_column *columns;
    size_t count;
    struct table_widths *widths; /* table_open_statement() alone */
    bool is_record;              /* one row, for people a line for each of its values */
    bool is_begun;               /* rows may follow: headings are there */
    size_t rows;
    bool is_path_below;      /* as text, call paths begin a line of their own: they are long */
    uint64_t hidden;         /* rows that a limit left out: table_close() says so */
    const char *hidden_text; /* what of them; NULL: how many */
};

struct table table_open(const struct report *report, const char *name, const char *title,
                        const struct table_column *columns, size_t count);
struct table table_open_record(const struct report *report, const char *name, const char *title,
                               const struct table_column *columns, size_t count);
__attribute__((format(printf, 2, 3))) void table_note(struct table *table, const char *format, ...);
void table_row(struct table *table, const struct table_cell *cells);
/* Whether options.limit leaves room for another row. */
static inline bool table_has_room(const struct table *table) {
    size_t limit = table->report->options.limit;
    return limit == 0 || table->rows < limit;
}
void table_close(struct table *table);

/* Rows that are an array of an object of JSON, which the caller writes; json NULL: a table. */
struct table table_begin_member(const struct report *report, struct jsonwriter *json,
                                const char *name, const char *title,
                                const struct table_column *columns, size_t count);
void table_end_member(struct table *table);

/* The rows of a statement of SQL: there is nothing around them, and what is in a column is known
 * only when it comes. So as text and Markdown the first rows are kept until it is known how wide
 * columns are. In a job. */
struct table_statement {
    bool has_header;
    bool is_grouped;  /* text: 12,903,424 */
    size_t cell_most; /* text: cut after so many characters; 0: never */
};
struct table table_open_statement(const struct report *report,
                                  const struct table_statement *statement,
                                  const struct table_column *columns, size_t count);
void table_close_statement(struct table *table);

/* Who gets tables in place of a file: REPORT_SINK. Cells and columns are there for the call. */
struct table_sink {
    void (*open)(void *context, const struct table *table, const char *title);
    void (*note)(void *context, const char *text);
    void (*row)(void *context, const struct table_cell *cells);
    void *context;
};

static inline struct table_cell table_none(void) {
    return (struct table_cell){0};
}
static inline struct table_cell table_number(uint64_t number) {
    return (struct table_cell){.is_known = true, .number = number};
}
static inline struct table_cell table_number_if(bool is_known, uint64_t number) {
    return (struct table_cell){.is_known = is_known, .number = is_known ? number : 0};
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
/* A text made by malloc(), which whoever asked for the cell frees. NULL: out of memory. */
static inline struct table_cell table_made_text(char *text) {
    return (struct table_cell){.is_known = text != NULL, .text = text, .is_owned = true};
}
static inline struct table_cell table_frame(const struct names_frame *frame) {
    return (struct table_cell){.is_known = frame != NULL, .frame = frame};
}
static inline struct table_cell table_path(uint32_t node) {
    return (struct table_cell){.is_known = true, .path = node};
}

/* Drawings for people stand between these, under a title (NULL: none). */
void table_drawing_begin(const struct report *report, const char *title);
void table_drawing_end(const struct report *report);

/* Around all tables of one output, in a job. */
struct table_document {
    struct jsonwriter *json; /* of REPORT_JSON */
    size_t tables;
};
void table_document_open(struct table_document *document, const struct report *report);
void table_document_close(struct table_document *document, const struct report *report);

/* ---- The forms: headings and one row in each. Of table.c, and of what has no table ---- */

void tabletext_headings(const struct table *table);
void tabletext_row(const struct table *table, const struct table_cell *cells);
void tabletext_markdown_headings(const struct table *table);
void tabletext_markdown_row(const struct table *table, const struct table_cell *cells);
/* A cell that is a number of some kind, for a sentence. */
struct number;
const char *tabletext_spell(struct number *buffer, struct table_cell cell);
/* In a cell of Markdown nothing ends the cell or begins anything else. */
void tabletext_escaped(FILE *out, const char *text);

/* Of statements. */
void tabletext_begin(struct table *table, const struct table_statement *statement);
void tabletext_keep(struct table *table, const struct table_cell *cells);
void tabletext_end(struct table *table);

/* CSV and TSV. */
void tabledata_fields_headings(const struct table *table);
void tabledata_fields_row(const struct table *table, const struct table_cell *cells);
void tabledata_json_row(const struct table *table, const struct table_cell *cells);
/* Any text as a field of CSV: between quotes, which are doubled inside; what begins like a formula
 * of a spreadsheet is marked as text. */
void tabledata_csv_text(FILE *out, const char *text);
/* One cell, which is known: a member, or several if it is a frame. report: of call paths. */
void tabledata_json_value(struct jsonwriter *json, const struct report *report, const char *name,
                          enum table_kind kind, const struct table_cell *cell);
/* The members of an object that a frame is. */
void tabledata_json_frame(struct jsonwriter *json, const struct names_frame *frame);
/* An array of such objects. */
void tabledata_json_path(const struct report *report, struct jsonwriter *json, const char *name,
                         uint32_t node);
/* The same of a column's, known or not. */
void tabledata_json_cell(struct jsonwriter *json, const struct report *report,
                         const struct table_column *column, const struct table_cell *cell);
/* The member "warnings": what is wrong with the file, and what its names lack. */
void tabledata_json_warnings(struct jsonwriter *json, const struct report *report);

#endif
