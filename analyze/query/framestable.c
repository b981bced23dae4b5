/* SPDX-License-Identifier: MIT */
/*
 * framestable.c: the table of the frames of each call path: a row for each function, those that
 * were inlined into another one included, innermost first.
 *
 * idxNum 1, idxStr "context=": argv[0] is the context; 0: all contexts.
 */
#include "analyze/query/callpaths.h"
#include "analyze/query/vtable.h"

enum { CONTEXT, LEVEL, FUNCTION, FILE_NAME, LINE, MODULE, INLINED, OFFSET };

static const struct vtable_column columns[] = {
    [CONTEXT] = {"context", "INTEGER", "contexts.id"},
    [LEVEL] = {"level", "INTEGER", "0: the function that allocated, 1: who called it, ..."},
    [FUNCTION] = {"function", "TEXT", "where unknown: module+0xoffset"},
    [FILE_NAME] = {"file", "TEXT", "NULL: unknown"},
    [LINE] = {"line", "INTEGER", "NULL: unknown"},
    [MODULE] = {"module", "TEXT", "program or library; NULL: unknown"},
    [INLINED] = {"inlined", "INTEGER",
                 "1: the compiler put it into the function of the next level"},
    [OFFSET] = {"offset", "INTEGER", "in the module's file; without a module the address"},
};

struct cursor {
    sqlite3_vtab_cursor base;
    size_t row; /* of the contexts */
    size_t end;
    uint32_t node;
    const struct names_frame *frames; /* of that node */
    size_t count;
    size_t frame;
    uint32_t level;
    sqlite3_int64 id;
};

static const struct query *query_of(const struct cursor *cursor) {
    return ((const struct vtable_view *)cursor->base.pVtab)->query;
}

/* Goes to the first node that is code, from the present one outwards. */
static void take_node(struct cursor *cursor) {
    const struct query *query = query_of(cursor);
    const struct model *model = query->source.model;
    while (cursor->node != 0 && model->nodes[cursor->node].frame < MEMTRACE_FRAME_CLASSES) {
        cursor->node = model->nodes[cursor->node].parent;
    }
    cursor->frame = 0;
    cursor->count = 0;
    if (cursor->node != 0) {
        cursor->frames =
            names_frames(query->source.names, model->nodes[cursor->node].frame, &cursor->count);
    }
}

/* Goes to the first frame of the first context that has one, from the present one on. */
static void take_context(struct cursor *cursor) {
    const struct model *model = query_of(cursor)->source.model;
    for (; cursor->row < cursor->end; cursor->row++) {
        cursor->level = 0;
        cursor->node = model->contexts[cursor->row].path;
        take_node(cursor);
        if (cursor->node != 0) {
            return;
        }
    }
}

static int next(sqlite3_vtab_cursor *base) {
    struct cursor *cursor = (struct cursor *)base;
    cursor->id++;
    cursor->level++;
    if (++cursor->frame < cursor->count) {
        return SQLITE_OK;
    }
    cursor->node = query_of(cursor)->source.model->nodes[cursor->node].parent;
    take_node(cursor);
    if (cursor->node == 0) {
        cursor->row++;
        take_context(cursor);
    }
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *view, sqlite3_index_info *info) {
    enum { FRAMES = 16 }; /* of a path, about */
    const struct vtable_view *mine = (const struct vtable_view *)view;
    size_t count = mine->query->source.model->context_count;
    info->estimatedRows = (sqlite3_int64)count * FRAMES;
    info->estimatedCost = (double)count * FRAMES + 1;
    if (vtable_ask_equal(info, mine->table, CONTEXT)) {
        info->estimatedRows = FRAMES;
        info->estimatedCost = FRAMES;
    }
    return SQLITE_OK;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                  sqlite3_value **argv) {
    struct cursor *cursor = (struct cursor *)base;
    const struct query *query;
    (void)text;
    (void)argc;
    *cursor = (struct cursor){.base = cursor->base};
    query = query_of(cursor);
    cursor->end = query->source.model->context_count;
    if (number == 1 && sqlite3_value_type(argv[0]) == SQLITE_INTEGER) {
        size_t found = vtable_contexts.find(query, sqlite3_value_int64(argv[0]));
        cursor->row = found != SIZE_MAX ? found : cursor->end;
        cursor->end = found != SIZE_MAX ? found + 1 : cursor->end;
    }
    take_context(cursor);
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *cursor) {
    const struct cursor *mine = (const struct cursor *)cursor;
    return mine->row >= mine->end;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    const struct cursor *cursor = (const struct cursor *)base;
    const struct names_frame *frame = &cursor->frames[cursor->frame];
    switch (number) {
    case CONTEXT:
        vtable_put_number(out, query_of(cursor)->source.model->contexts[cursor->row].id);
        break;
    case LEVEL:
        vtable_put_number(out, cursor->level);
        break;
    case FUNCTION:
        vtable_put_lasting(out, callpaths_name(query_of(cursor), frame));
        break;
    case FILE_NAME:
        vtable_put_lasting(out, frame->file);
        break;
    case LINE:
        vtable_put_unless(out, frame->line, 0);
        break;
    case MODULE:
        vtable_put_lasting(out, frame->module[0] != '\0' ? frame->module : NULL);
        break;
    case INLINED:
        vtable_put_number(out, frame->inlined);
        break;
    default:
        vtable_put_number(out, frame->offset);
        break;
    }
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
    *id = ((const struct cursor *)cursor)->id;
    return SQLITE_OK;
}

static const sqlite3_module module = VTABLE_MODULE(vtable_close, column);

static const char *const indices[] = {"context", "function", NULL};

const struct vtable vtable_frames = {
    .name = "frames",
    .about = "the frames of each call path, innermost first",
    VTABLE_COLUMNS(columns),
    .indices = indices,
    .module = &module,
    .cursor_size = sizeof(struct cursor),
};
