/* SPDX-License-Identifier: MIT */
/*
 * framestable.c: the table of the frames of each call path: a row for each function, those that
 * were inlined into another one included, innermost first.
 *
 * idxNum 1, idxStr "context=": argv[0] is the context; 0: all contexts.
 */
#include "analyze/query/callpaths.h"
#include "analyze/query/vtable.h"

struct frame_row {
    uint32_t context;
    uint32_t level;
    const struct names_frame *frame;
};

#define CELL(name, value)                                                                          \
    static struct table_cell frame_##name(const struct rows_of *of, const void *record) {          \
        const struct names_frame *frame = ((const struct frame_row *)record)->frame;               \
        (void)of;                                                                                  \
        return value;                                                                              \
    }
CELL(function, table_frame(frame))
CELL(file, table_text(frame->file))
CELL(line, table_number_if(frame->line != 0, frame->line))
CELL(module, table_text(frame->module[0] != '\0' ? frame->module : NULL))
CELL(inlined, table_number(frame->inlined))
CELL(offset, table_number(frame->offset))
#undef CELL

enum { CONTEXT };

static const struct table_column columns[] = {
    [CONTEXT] = {"context", NULL, TABLE_COUNT, 0, "context", "contexts.id",
                 ROWS_FIELD(struct frame_row, context)},
    {"level", NULL, TABLE_COUNT, 0, "level",
     "0: the function that allocated, 1: who called it, ...", ROWS_FIELD(struct frame_row, level)},
    {"function", NULL, TABLE_FRAME, 0, "function", "where unknown: module+0xoffset",
     .cell = frame_function},
    {"file", NULL, TABLE_TEXT, 0, "file", "NULL: unknown", .cell = frame_file},
    {"line", NULL, TABLE_COUNT, 0, "line", "NULL: unknown", .cell = frame_line},
    {"module", NULL, TABLE_TEXT, 0, "module", "program or library; NULL: unknown",
     .cell = frame_module},
    {"inlined", NULL, TABLE_COUNT, 0, "inlined",
     "1: the compiler put it into the function of the next level", .cell = frame_inlined},
    {"offset", NULL, TABLE_ADDRESS, 0, "offset",
     "in the module's file; without a module the address", .cell = frame_offset},
};

static const struct rows rows = {
    .name = "frames",
    .about = "the frames of each call path, innermost first",
    ROWS_COLUMNS(columns),
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
        size_t found = rows_contexts.find(&query->of, sqlite3_value_int64(argv[0]));
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
    const struct query *query = query_of(cursor);
    struct frame_row row = {query->source.model->contexts[cursor->row].id, cursor->level,
                            &cursor->frames[cursor->frame]};
    vtable_put(query, &rows, &row, number, out);
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
    *id = ((const struct cursor *)cursor)->id;
    return SQLITE_OK;
}

static const sqlite3_module module = VTABLE_MODULE(vtable_close, column);

static const char *const indices[] = {"context", "function", NULL};

const struct vtable vtable_frames = {
    .rows = &rows,
    .indices = indices,
    .module = &module,
    .cursor_size = sizeof(struct cursor),
};
