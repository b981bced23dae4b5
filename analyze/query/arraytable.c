/* SPDX-License-Identifier: MIT */
/*
 * arraytable.c: SQLite's module of the tables that are arrays of the model. Their rowid is the
 * place in the array, from 1 on. One constraint is pushed down: that the first column equals a
 * value.
 *
 * idxNum 1, idxStr "NAME=": it was, and argv[0] is the value; 0: all rows.
 */
#include "analyze/query/vtable.h"

#include <stdlib.h>

struct cursor {
    sqlite3_vtab_cursor base;
    size_t row;
    size_t end;
};

static int best_index(sqlite3_vtab *view, sqlite3_index_info *info) {
    const struct vtable_view *mine = (const struct vtable_view *)view;
    size_t count = mine->table->count(mine->query);
    info->estimatedRows = (sqlite3_int64)count;
    info->estimatedCost = (double)count + 1;
    for (int i = 0; mine->table->find != NULL && i < info->nConstraint; i++) {
        if (info->aConstraint[i].usable && info->aConstraint[i].iColumn == 0 &&
            info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ) {
            info->aConstraintUsage[i].argvIndex = 1;
            info->idxNum = 1;
            info->idxStr = sqlite3_mprintf("%s=", mine->table->columns[0].name);
            info->needToFreeIdxStr = 1;
            info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
            info->estimatedRows = 1;
            info->estimatedCost = 1;
            return info->idxStr != NULL ? SQLITE_OK : SQLITE_NOMEM;
        }
    }
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *view, sqlite3_vtab_cursor **cursor) {
    struct cursor *made = sqlite3_malloc(sizeof *made);
    (void)view;
    if (made == NULL) {
        return SQLITE_NOMEM;
    }
    *made = (struct cursor){0};
    *cursor = &made->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor) {
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* Only an integer can be found: what else may equal one ('12', 12.0) SQLite finds among all. */
static int filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc,
                  sqlite3_value **argv) {
    const struct vtable_view *view = (const struct vtable_view *)cursor->pVtab;
    struct cursor *mine = (struct cursor *)cursor;
    (void)text;
    (void)argc;
    mine->row = 0;
    mine->end = view->table->count(view->query);
    if (number == 1 && sqlite3_value_type(argv[0]) == SQLITE_INTEGER) {
        size_t found = view->table->find(view->query, sqlite3_value_int64(argv[0]));
        mine->row = found != SIZE_MAX ? found : mine->end;
        mine->end = found != SIZE_MAX ? found + 1 : mine->end;
    }
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *cursor) {
    ((struct cursor *)cursor)->row++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *cursor) {
    const struct cursor *mine = (const struct cursor *)cursor;
    return mine->row >= mine->end;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int number) {
    const struct vtable_view *view = (const struct vtable_view *)cursor->pVtab;
    view->table->put(view->query, ((const struct cursor *)cursor)->row, number, out);
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
    *id = (sqlite3_int64)((const struct cursor *)cursor)->row + 1;
    return SQLITE_OK;
}

const sqlite3_module vtable_array_module = {
    .iVersion = 1,
    .xCreate = vtable_connect,
    .xConnect = vtable_connect,
    .xBestIndex = best_index,
    .xDisconnect = vtable_disconnect,
    .xDestroy = vtable_disconnect,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = at_end,
    .xColumn = column,
    .xRowid = rowid,
};
