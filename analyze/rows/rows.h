/* SPDX-License-Identifier: MIT */
/*
 * rows.h: where rows come from: what a model, a run or a recording has many of (threads, contexts,
 * marks, allocations ...), each with its columns, which stand here once. SQL's tables are made of
 * these, and reports show some of the columns.
 *
 * A row is a record, most often a struct of the model, and a column is a field of it or what a
 * function makes of it. A cell is made when it is asked for. Columns stand in the order of SQL and,
 * where no list of a report or an endpoint says otherwise, of whoever else shows them: there a
 * column that is new is seen everywhere (table.h: table_place).
 *
 * Called by analyze/report and analyze/query. Any thread; what is read must not change meanwhile.
 */
#ifndef ANALYZE_ROWS_ROWS_H
#define ANALYZE_ROWS_ROWS_H

#include "analyze/rows/table.h"

/* Of what rows are, and what is needed to fill their cells. */
struct rows_of {
    const struct model *whole; /* nodes and processes are of it */
    const struct model *model; /* of what is selected; may be the same */
    const struct names *names; /* of the whole model */
    const struct run *run;     /* NULL: the file stands for itself */
    const struct detail *detail;
    struct rows_scope *scopes; /* rows_pair_scopes() */
    size_t scope_count;
};

/* One thing. */
struct rows {
    const char *name; /* of the table in SQL */
    const char *about;
    const struct table_column *columns;
    size_t column_count;
    /* An array of the model: where it is in there, and where its length (ROWS_ARRAY). */
    unsigned short item_size; /* 0: they are none */
    unsigned items;
    unsigned item_count;
    /* Other things that lie in memory: how many, and the record of each. NULL: an array, or rows
     * come from a pass, or from blocks of a file. A record that is made for the occasion is put
     * into `room`. */
    size_t (*count)(const struct rows_of *of);
    const void *(*record)(const struct rows_of *of, size_t row, void *room);
    /* The row whose first column has this value, or SIZE_MAX. NULL: rows are not found so. */
    size_t (*find)(const struct rows_of *of, int64_t value);
};
enum { ROWS_ROOM = 256 };

#define ROWS_COLUMNS(array) .columns = (array), .column_count = sizeof(array) / sizeof((array)[0])
#define ROWS_ARRAY(array, number)                                                                  \
    .item_size = sizeof *((struct model *)NULL)->array, .items = offsetof(struct model, array),    \
    .item_count = offsetof(struct model, number)
/* In a column: its value is a field of the record: a number of any width, signed or real where the
 * kind says so, a pointer to a text or an array with one; or a struct table_cell, as it is. */
#define ROWS_FIELD(type, member)                                                                   \
    .size = sizeof(((type *)NULL)->member), .place = offsetof(type, member)

/* The cell of a column that is no field: `value`, of a record of that type called `name`. */
#define ROWS_CELL(function, type, name, value)                                                     \
    static struct table_cell function(const struct rows_of *of, const void *record) {              \
        const type *name = record;                                                                 \
        (void)of;                                                                                  \
        return value;                                                                              \
    }

/* A text of it lasts as long as what rows are of and the record, or is the caller's to free. */
struct table_cell rows_cell(const struct rows *rows, const struct rows_of *of, const void *record,
                            size_t column);

/* Of things that lie in memory. */
size_t rows_count(const struct rows *rows, const struct rows_of *of);
const void *rows_record(const struct rows *rows, const struct rows_of *of, size_t row, void *room);

/* One row after the other. */
struct rows_cursor {
    const struct rows *rows;
    const struct rows_of *of;
    size_t row;
    size_t end;
    max_align_t room[ROWS_ROOM / sizeof(max_align_t)];
};
struct rows_cursor rows_begin(const struct rows *rows, const struct rows_of *of);
/* NULL: that was all. Until the next call. */
const void *rows_next(struct rows_cursor *cursor);

/* Some columns of a record as members of the JSON object that is open. A number that is not known
 * is 0 there. */
struct jsonwriter;
void rows_members(struct jsonwriter *json, const struct rows *rows, const struct rows_of *of,
                  const void *record, const unsigned char *shown, size_t count);

/* ---- In reports ---- */

/* What a report is about. */
struct rows_of rows_of_report(const struct report *report);

/* The places of the columns that are shown there; how many. */
size_t rows_shown(const struct rows *rows, enum table_place place, unsigned char *shown,
                  size_t most);
/* The record's columns that are shown there, as members of an object that the caller writes. */
void rows_put_members(struct jsonwriter *json, const struct report *report, const struct rows *rows,
                      enum table_place place, const void *record);

/* Some columns of a thing, in the order of a report: the places of them in rows.columns. */
enum { ROWS_SHOWN = 16 };
struct rows_view {
    const struct rows *rows;
    struct rows_of of;
    unsigned char shown[ROWS_SHOWN];
    size_t count;
    struct table_column columns[ROWS_SHOWN]; /* for table_open(); headings may be changed before */
    bool (*is_wanted)(const void *record);   /* NULL: all are */
    /* Columns of the thing with numbers: rows with the largest come first, those with equal ones in
     * the order of the thing. */
    unsigned char sort[2];
    size_t sort_count; /* 0: all are in that order */
};
/* shown NULL: all that reports show. */
struct rows_view rows_view(const struct report *report, const struct rows *rows,
                           const unsigned char *shown, size_t count);
/* The one of that name. */
struct table_column *rows_view_column(struct rows_view *view, const char *name);
void rows_put(struct table *table, const struct rows_view *view, const void *record);
/* The first rows, as options.limit says. */
void rows_put_all(struct table *table, const struct rows_view *view);
/* A table of them. */
void rows_put_table(const struct report *report, const char *name, const char *title,
                    const struct rows_view *view);

/* ---- The things ---- */

extern const struct rows rows_summary, rows_processes, rows_threads, rows_modules, rows_contexts,
    rows_timeline, rows_marks, rows_scopes, rows_foreign, rows_pools, rows_allocations,
    rows_details;

/* Places of columns that are named elsewhere. Those of SQL come first in these. */
enum {
    CONTEXT_ID,
    CONTEXT_PARENT,
    CONTEXT_HASH,
    CONTEXT_CLASS,
    CONTEXT_POOL,
    CONTEXT_FUNCTION,
    CONTEXT_FILE,
    CONTEXT_LINE,
    CONTEXT_MODULE,
    CONTEXT_DEPTH,
    CONTEXT_LIVE_BYTES,
    CONTEXT_LIVE_BLOCKS,
    CONTEXT_PEAK_BYTES,
    CONTEXT_TOTAL_BYTES,
    CONTEXT_ALLOCATIONS,
    CONTEXT_FREES,
    CONTEXT_FREED_BYTES,
    CONTEXT_TEMPORARY,
    CONTEXT_PATH,
    CONTEXT_TOTAL_ERROR,
    CONTEXT_LIVE_ERROR,
    CONTEXT_AVERAGE,
    CONTEXT_FIRST,
    CONTEXT_LAST,
    CONTEXT_LIFETIME,
    CONTEXT_CLASS_NAME,
    CONTEXT_COLUMNS
};
enum {
    MARK_TIME,
    MARK_THREAD,
    MARK_KIND,
    MARK_NAME,
    MARK_SCOPE,
    MARK_WHAT,
    MARK_ID,
    MARK_ANY_NAME,
    MARK_COLUMNS
};
enum {
    FOREIGN_FREER,
    FOREIGN_OWNER,
    FOREIGN_BLOCKS,
    FOREIGN_BYTES,
    FOREIGN_FREER_NAME,
    FOREIGN_OWNER_NAME,
    FOREIGN_COLUMNS
};
enum {
    POOL_NAME,
    POOL_ALLOCATIONS,
    POOL_TOTAL_BYTES,
    POOL_FREES,
    POOL_LIVE_BLOCKS,
    POOL_LIVE_BYTES,
    POOL_HELD_BYTES,
    POOL_HELD_BACK,
    POOL_HEAP_BYTES,
    POOL_HEAP_BLOCKS,
    POOL_MAPPING_BYTES,
    POOL_MAPPINGS,
    POOL_POOL_BYTES,
    POOL_POOL_BLOCKS,
    POOL_OUTSIDE_BYTES,
    POOL_OUTSIDE_BLOCKS,
    POOL_SHARE,
    POOL_COLUMNS
};
enum {
    PROCESS_PID,
    PROCESS_PARENT,
    PROCESS_IMAGE,
    PROCESS_PROGRAM,
    PROCESS_COMMAND,
    PROCESS_STARTED,
    PROCESS_ENDED,
    PROCESS_END,
    PROCESS_PEAK,
    PROCESS_LIVE_BYTES,
    PROCESS_LOST,
    PROCESS_ALLOCATIONS,
    PROCESS_TOTAL_BYTES,
    PROCESS_FREES,
    PROCESS_LIVE_BLOCKS,
    PROCESS_FILE,
    PROCESS_LIGHT,
    PROCESS_PID_TEXT,
    PROCESS_NAME,
    PROCESS_DURATION,
    PROCESS_COLUMNS
};
enum {
    ALLOCATION_ID,
    ALLOCATION_THREAD,
    ALLOCATION_NUMBER,
    ALLOCATION_ADDRESS,
    ALLOCATION_SIZE,
    ALLOCATION_SLACK,
    ALLOCATION_USABLE,
    ALLOCATION_ALIGNMENT,
    ALLOCATION_ZEROED,
    ALLOCATION_MAPPED,
    ALLOCATION_ARENA,
    ALLOCATION_CONTEXT,
    ALLOCATION_CLASS,
    ALLOCATION_POOL,
    ALLOCATION_BORN,
    ALLOCATION_FREED,
    ALLOCATION_LIFETIME,
    ALLOCATION_FREED_BY,
    ALLOCATION_FREED_CONTEXT,
    ALLOCATION_TEMPORARY,
    ALLOCATION_REALLOCATED,
    ALLOCATION_REALLOC_OF,
    ALLOCATION_CHAIN,
    ALLOCATION_CHAIN_LENGTH,
    ALLOCATION_CHAIN_BORN,
    ALLOCATION_FIRST_SIZE,
    ALLOCATION_INHERITED,
    ALLOCATION_SCOPE,
    ALLOCATION_WEIGHT,
    ALLOCATION_COUNT,
    ALLOCATION_AGE,
    ALLOCATION_HASH,
    ALLOCATION_PATH,
    ALLOCATION_COLUMNS
};

/* Of what single blocks tell of a context (blocks/detail.h). */
enum {
    DETAIL_ALLOCATIONS,
    DETAIL_SMALLEST,
    DETAIL_P50_SIZE,
    DETAIL_P90_SIZE,
    DETAIL_LARGEST_SIZE,
    DETAIL_SLACK,
    DETAIL_LIVE_BYTES,
    DETAIL_LIVE_BLOCKS,
    DETAIL_HASH,
    DETAIL_PATH,
    DETAIL_COLUMNS
};

/* A record of rows_allocations; reports, which show no scope, have a struct life alone. */
struct rows_allocation {
    struct life life;
    const char *scope; /* the innermost that it was born in; NULL: none */
};

/* The innermost function at a node of the whole model. NULL: it is no code. */
const struct names_frame *rows_innermost(const struct rows_of *of, uint32_t node);
/* How many nodes of a path are code. */
size_t rows_depth(const struct model *model, uint32_t node);

/* A scope that a thread went through: places in model.marks. end SIZE_MAX: it never ended. */
struct rows_scope {
    size_t begin;
    size_t end;
};
/* Fills of->scopes, which the caller frees. 0, or -1: out of memory. */
int rows_pair_scopes(struct rows_of *of);

/* With blanks between them, an empty one as two quotes. The caller frees it. NULL: out of memory.
 */
char *rows_join_arguments(struct arguments all);

#endif
