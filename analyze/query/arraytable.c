/* SPDX-License-Identifier: MIT */
/*
 * arraytable.c: SQLite's module of the tables that are arrays of the model. Their rowid is the
 * place in the array, from 1 on. One constraint is pushed down: that the first column equals a
 * value. So is an order that puts the same values of one column together.
 *
 * idxNum 1, idxStr "NAME=": it was, and argv[0] is the value; 2, idxStr "NAME grouped": all rows in
 * that order; 0: all rows.
 */
#include "analyze/query/vtable.h"

#include <stdlib.h>

/* Whether the rows are to be grouped, in whatever order groups come, by what the table can put
 * together. */
static bool asks_grouped(sqlite3_index_info *info, const struct vtable *table) {
    int distinct = sqlite3_vtab_distinct(info);
    return table->grouped != NULL && (distinct == 1 || distinct == 2) && info->nOrderBy == 1 &&
           info->aOrderBy[0].iColumn == table->grouped_column;
}

static int best_index(sqlite3_vtab *view, sqlite3_index_info *info) {
    const struct vtable_view *mine = (const struct vtable_view *)view;
    size_t count = mine->table->count(mine->query);
    info->estimatedRows = (sqlite3_int64)count;
    info->estimatedCost = (double)count + 1;
    if (mine->table->find != NULL && vtable_ask_equal(info, mine->table, 0)) {
        info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
        info->estimatedRows = 1;
        info->estimatedCost = 1;
    } else if (asks_grouped(info, mine->table)) {
        info->idxNum = 2;
        info->idxStr =
            sqlite3_mprintf("%s grouped", mine->table->columns[mine->table->grouped_column].name);
        info->needToFreeIdxStr = 1;
        info->orderByConsumed = 1;
    }
    return SQLITE_OK;
}

/* Only an integer can be found: what else may equal one ('12', 12.0) SQLite finds among all. */
static int filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
                  sqlite3_value **argv) {
    const struct vtable_view *view = (const struct vtable_view *)cursor->pVtab;
    struct vtable_array_cursor *mine = (struct vtable_array_cursor *)cursor;
    (void)text;
    (void)argc;
    mine->row = 0;
    mine->end = view->table->count(view->query);
    if (number == 1 && sqlite3_value_type(argv[0]) == SQLITE_INTEGER) {
        size_t found = view->table->find(view->query, sqlite3_value_int64(argv[0]));
        mine->row = found != SIZE_MAX ? found : mine->end;
        mine->end = found != SIZE_MAX ? found + 1 : mine->end;
    }
    mine->order = number == 2 ? view->table->grouped(view->query) : NULL;
    return number == 2 && mine->order == NULL ? SQLITE_NOMEM : SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *cursor) {
    ((struct vtable_array_cursor *)cursor)->row++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *cursor) {
    const struct vtable_array_cursor *mine = (const struct vtable_array_cursor *)cursor;
    return mine->row >= mine->end;
}

static size_t row_of(const struct vtable_array_cursor *cursor) {
    return cursor->order != NULL ? cursor->order[cursor->row] : cursor->row;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int number) {
    const struct vtable_view *view = (const struct vtable_view *)cursor->pVtab;
    view->table->put(view->query, row_of((const struct vtable_array_cursor *)cursor), number, out);
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
    *id = (sqlite3_int64)row_of((const struct vtable_array_cursor *)cursor) + 1;
    return SQLITE_OK;
}

const sqlite3_module vtable_array_module = VTABLE_MODULE(vtable_close, column);
