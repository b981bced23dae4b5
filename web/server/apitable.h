/* SPDX-License-Identifier: MIT */
/*
 * apitable.h: rows as JSON: {columns, rows, total, next, frames, paths}. Cells of frames and call
 * paths are numbers into the last two.
 *
 * Called by endpoints. The parameters sort, order, limit and cursor (of routes with ROUTE_TABLE)
 * are minded here. A cursor is the place of the next row: rows of one view never change.
 */
#ifndef WEB_SERVER_APITABLE_H
#define WEB_SERVER_APITABLE_H

#include "web/server/api.h"
#include "web/server/apiframes.h"

enum { APITABLE_ROWS = 1000, APITABLE_MOST_ROWS = 100000 };

/* How the table is asked for. */
struct apitable_wish {
    size_t sort; /* place among the columns; SIZE_MAX: as rows come */
    bool descending;
    size_t limit;
    size_t from; /* rows before are left out */
};

/* A call path of the other side of a difference. */
static inline struct table_cell apitable_base_path(uint32_t node) {
    return (struct table_cell){.is_known = true, .path = node, .number = 1};
}

/* Rows that a handler makes, one after the other. */
struct apitable {
    struct api_call *call;
    const struct table_column *columns;
    size_t count;
    struct apiframes frames;
    uint64_t *paths; /* nodes; those of the base have bit 32 set */
    size_t path_count, path_room;
    struct numbermap path_places; /* by node: number + 1 */
    size_t rows;
    uint64_t total; /* to be set before apitable_end(): UINT64_MAX is the number of rows written */
    uint64_t next;  /* cursor of what follows; 0: nothing does */
    bool is_ended;  /* no more rows come */
};

/* Reads sort, order, limit and cursor. usual_sort: a column's name, or NULL: as rows come. Numbers
 * are sorted downwards unless `order` says otherwise, texts upwards. */
struct apitable_wish apitable_wish(struct api_call *call, const struct table_column *columns,
                                   size_t count, const char *usual_sort);

/* What a table says of a column: its name, heading and kind. */
void apitable_column(struct jsonwriter *json, const struct table_column *column);

/* Columns that only SQL names go by that name: what apitable_begin() and apitable_wish() take. */
void apitable_columns(const struct rows *rows, const unsigned char *shown, size_t count,
                      struct table_column *columns);

/* The table as the value of the member `name` (NULL: of "data"). Columns without a name are not
 * shown to programs: theirs is made of the heading. */
void apitable_begin(struct apitable *table, struct api_call *call, const char *name,
                    const struct table_column *columns, size_t count);
/* Cells that are owned are freed. */
void apitable_row(struct apitable *table, struct table_cell *cells);
/* No more rows come: other members may follow. For whoever writes such. */
void apitable_end_rows(struct apitable *table);
void apitable_end(struct apitable *table);

/* One cell as a member, in the same form: of what is no frame and no path. */
void apitable_cell(struct jsonwriter *json, const char *name, enum table_kind kind,
                   const struct table_cell *cell);

/* Whether such values are sorted as texts. */
bool apitable_is_text(enum table_kind kind);

/* The whole of a thing's rows (rows.h), some of its columns, sorted and cut as was asked. */
struct apitable_rows {
    const struct rows *rows;
    const unsigned char *shown; /* places in rows->columns; NULL: the first ones ... */
    size_t count;               /* ... 0: all that the page shows */
    const char *sort;           /* the usual one, by name; NULL: as rows come */
    /* Writes what belongs to the rows that were written, as further members of the table: their
     * records in that order. NULL: nothing. */
    void (*more)(struct api_call *call, const void *const *records, size_t count);
};
void apitable_rows(struct api_call *call, const char *name, const struct apitable_rows *rows);
/* The same of records that were made elsewhere, an array of pointers; `of` fills their cells. */
void apitable_records(struct api_call *call, const char *name, const struct apitable_rows *rows,
                      const struct rows_of *of, const void *const *records, size_t count);
/* The same of an array of records that the call's report is of. */
void apitable_array(struct api_call *call, const struct apitable_rows *rows, const void *records,
                    size_t record_size, size_t count);

#endif
