/* SPDX-License-Identifier: MIT */
/* rows.c: what rows of all things have in common. See rows.h. */
#include "analyze/rows/rows.h"

#include "analyze/base/job.h"

#include <stdlib.h>
#include <string.h>

static uint64_t rows_read_number(const unsigned char *at, size_t size) {
    uint64_t number = 0;
    memcpy(&number, at, size); /* the low bytes */
    return number;
}

static struct table_cell rows_read_text(const struct table_column *column,
                                        const unsigned char *at) {
    const char *text = (const char *)at;
    if (column->size == sizeof text) {
        memcpy(&text, at, sizeof text);
    }
    if (text == NULL || (column->none == TABLE_ZERO && text[0] == '\0')) {
        return table_none();
    }
    return table_text(text);
}

static struct table_cell read_field(const struct table_column *column, const unsigned char *at) {
    struct table_cell cell = {.is_known = true};
    if (column->size == sizeof cell) {
        memcpy(&cell, at, sizeof cell);
        return cell;
    }
    switch (column->kind) {
    case TABLE_TEXT:
    case TABLE_WORD:
        return rows_read_text(column, at);
    case TABLE_REAL:
    case TABLE_PERCENT:
        memcpy(&cell.real, at, sizeof cell.real);
        return cell;
    case TABLE_PATH:
        cell.path = (uint32_t)rows_read_number(at, column->size);
        return cell;
    default:
        cell.number = rows_read_number(at, column->size);
        cell.is_known = !(column->none == TABLE_ZERO && cell.number == 0) &&
                        !(column->none == TABLE_MOST && cell.number == UINT64_MAX);
        return cell;
    }
}

struct table_cell rows_cell(const struct rows *rows, const struct rows_of *of, const void *record,
                            size_t column) {
    const struct table_column *asked = &rows->columns[column];
    return asked->cell != NULL ? asked->cell(of, record)
                               : read_field(asked, (const unsigned char *)record + asked->place);
}

size_t rows_count(const struct rows *rows, const struct rows_of *of) {
    size_t count;
    if (rows->count != NULL) {
        return rows->count(of);
    }
    memcpy(&count, (const char *)of->model + rows->item_count, sizeof count);
    return count;
}

const void *rows_record(const struct rows *rows, const struct rows_of *of, size_t row, void *room) {
    const char *items;
    if (rows->record != NULL) {
        return rows->record(of, row, room);
    }
    memcpy(&items, (const char *)of->model + rows->items, sizeof items);
    return items + row * rows->item_size;
}

struct rows_cursor rows_begin(const struct rows *rows, const struct rows_of *of) {
    return (struct rows_cursor){.rows = rows, .of = of, .end = rows_count(rows, of)};
}

const void *rows_next(struct rows_cursor *cursor) {
    return cursor->row < cursor->end
               ? rows_record(cursor->rows, cursor->of, cursor->row++, cursor->room)
               : NULL;
}

/* ---- In reports ---- */

struct rows_of rows_of_report(const struct report *report) {
    return (struct rows_of){.whole = report->model,
                            .model = report->model,
                            .names = report->names,
                            .run = report->run != NULL ? report->run->run : NULL,
                            .detail = report->detail};
}

size_t rows_shown(const struct rows *rows, enum table_place place, unsigned char *shown,
                  size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < rows->column_count && count < most; i++) {
        if (rows->columns[i].only == 0 || (rows->columns[i].only & place) != 0) {
            shown[count++] = (unsigned char)i;
        }
    }
    return count;
}

/* What was made for who asked is given back. */
static void rows_release(const struct table_cell *cell) {
    if (cell->is_owned) {
        free((char *)cell->text);
    }
}

void rows_members(struct jsonwriter *json, const struct rows *rows, const struct rows_of *of,
                  const void *record, const unsigned char *shown, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct table_column *column = &rows->columns[shown[i]];
        struct table_cell cell = rows_cell(rows, of, record, shown[i]);
        tabledata_json_value(json, NULL, column->name, column->kind, &cell);
        rows_release(&cell);
    }
}

void rows_put_members(struct jsonwriter *json, const struct report *report, const struct rows *rows,
                      enum table_place place, const void *record) {
    const struct rows_of of = rows_of_report(report);
    unsigned char shown[UINT8_MAX];
    size_t count = rows_shown(rows, place, shown, sizeof shown);
    for (size_t i = 0; i < count; i++) {
        struct table_cell cell = rows_cell(rows, &of, record, shown[i]);
        tabledata_json_cell(json, report, &rows->columns[shown[i]], &cell);
        rows_release(&cell);
    }
}

struct rows_view rows_view(const struct report *report, const struct rows *rows,
                           const unsigned char *shown, size_t count) {
    struct rows_view view = {.rows = rows, .of = rows_of_report(report), .count = count};
    if (shown != NULL) {
        memcpy(view.shown, shown, count);
    } else {
        view.count = rows_shown(rows, TABLE_REPORT, view.shown, ROWS_SHOWN);
    }
    for (size_t i = 0; i < view.count; i++) {
        view.columns[i] = rows->columns[view.shown[i]];
    }
    return view;
}

struct table_column *rows_view_column(struct rows_view *view, const char *name) {
    struct table_column *column = view->columns;
    while (column->name == NULL || strcmp(column->name, name) != 0) {
        column++;
    }
    return column;
}

void rows_put(struct table *table, const struct rows_view *view, const void *record) {
    struct table_cell cells[sizeof view->columns / sizeof view->columns[0]];
    for (size_t i = 0; i < view->count; i++) {
        cells[i] = rows_cell(view->rows, &view->of, record, view->shown[i]);
    }
    table_row(table, cells);
    for (size_t i = 0; i < view->count; i++) {
        rows_release(&cells[i]);
    }
}

static void rows_put_in_order(struct table *table, const struct rows_view *view) {
    struct rows_cursor cursor = rows_begin(view->rows, &view->of);
    const void *record;
    while (table_has_room(table) && (record = rows_next(&cursor)) != NULL) {
        rows_put(table, view, record);
    }
    table->hidden = cursor.end - table->rows;
}

struct rows_rank {
    uint64_t keys[2];
    size_t row;
};

static int rows_largest_first(const void *left, const void *right) {
    const struct rows_rank *a = left;
    const struct rows_rank *b = right;
    for (size_t i = 0; i < 2; i++) {
        if (a->keys[i] != b->keys[i]) {
            return a->keys[i] < b->keys[i] ? 1 : -1;
        }
    }
    return (a->row > b->row) - (a->row < b->row);
}

/* Keys are made once: some columns take long. */
static void rows_put_sorted(struct table *table, const struct rows_view *view) {
    struct rows_cursor cursor = rows_begin(view->rows, &view->of);
    struct rows_rank *ranks = job_array(cursor.end, sizeof *ranks);
    const void *record;
    size_t count = 0;
    while ((record = rows_next(&cursor)) != NULL) {
        if (view->is_wanted == NULL || view->is_wanted(record)) {
            struct rows_rank *rank = &ranks[count++];
            rank->row = cursor.row - 1;
            for (size_t i = 0; i < view->sort_count; i++) {
                struct table_cell cell = rows_cell(view->rows, &view->of, record, view->sort[i]);
                rank->keys[i] = cell.is_known ? cell.number : 0;
            }
        }
    }
    qsort(ranks, count, sizeof *ranks, rows_largest_first);
    for (size_t i = 0; i < count && table_has_room(table); i++) {
        rows_put(table, view, rows_record(view->rows, &view->of, ranks[i].row, cursor.room));
    }
    table->hidden = count - table->rows;
    job_release(ranks);
}

void rows_put_all(struct table *table, const struct rows_view *view) {
    (view->sort_count != 0 ? rows_put_sorted : rows_put_in_order)(table, view);
}

void rows_put_table(const struct report *report, const char *name, const char *title,
                    const struct rows_view *view) {
    struct table table = table_open(report, name, title, view->columns, view->count);
    rows_put_all(&table, view);
    table_close(&table);
}
