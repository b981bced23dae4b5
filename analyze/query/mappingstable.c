/* SPDX-License-Identifier: MIT */
/*
 * mappingstable.c: the table of address space that the program mapped, by a pass over the events. A
 * session's filters of contexts count, and its view; filters of blocks do not.
 */
#include "analyze/query/vtable.h"
#include "analyze/replay/lives.h"
#include "analyze/replay/mappinglist.h"

#include <sys/mman.h>

/* A row: a mapping, or a piece of one that ended by itself. */
struct mapping_life {
    struct mapping piece;
    uint64_t freed_ns; /* UINT64_MAX: it was never unmapped */
    uint32_t freed_by;
};

static const char *operation_name(uint8_t operation) {
    return operation == MEMTRACE_MAP_REMAP   ? "mremap"
           : operation == MEMTRACE_MAP_BREAK ? "brk"
                                             : "mmap";
}

struct table_cell vtable_protection(uint32_t protection) {
    static const char *const names[] = {"---", "r--", "-w-", "rw-", "--x", "r-x", "-wx", "rwx"};
    return table_text(
        names[((protection & PROT_READ) != 0) | ((protection & PROT_WRITE) != 0) << 1 |
              ((protection & PROT_EXEC) != 0) << 2]);
}

#define CELL(name, value)                                                                          \
    static struct table_cell mapping_##name(const struct rows_of *of, const void *record) {        \
        const struct mapping_life *life = record;                                                  \
        (void)of;                                                                                  \
        return value;                                                                              \
    }
CELL(size, table_number(life->piece.end - life->piece.start))
CELL(lifetime, table_number_if(life->freed_ns != UINT64_MAX, life->freed_ns - life->piece.born_ns))
CELL(freed_by, table_number_if(life->freed_ns != UINT64_MAX, life->freed_by))
CELL(operation, table_text(operation_name(life->piece.operation)))
CELL(protection, vtable_protection(life->piece.protection))
CELL(shared, table_number((life->piece.flags & MAP_SHARED) != 0))
#undef CELL

#define OF(member) ROWS_FIELD(struct mapping_life, member)
static const struct table_column columns[] = {
    {"id", NULL, TABLE_COUNT, 0, "id", "of the mapping, in their order: its pieces share it",
     OF(piece.id)},
    {"address", NULL, TABLE_ADDRESS, 0, "address", "where it, or this piece of it, began",
     OF(piece.start)},
    {"size", NULL, TABLE_BYTES, 0, "size", "bytes, whole pages", .cell = mapping_size},
    {"birth_ns", NULL, TABLE_DURATION, 0, "born", "ns since the program's start",
     OF(piece.born_ns)},
    {"death_ns", NULL, TABLE_DURATION, 0, "freed", "ns; NULL: never unmapped", OF(freed_ns),
     .none = TABLE_MOST},
    {"lifetime_ns", NULL, TABLE_DURATION, 0, "lifetime", "ns; NULL: never unmapped",
     .cell = mapping_lifetime},
    {"thread", NULL, TABLE_COUNT, 0, "thread", "that mapped it", OF(piece.thread)},
    {"freed_by", NULL, TABLE_COUNT, 0, "freed_by", "thread; NULL: never unmapped",
     .cell = mapping_freed_by},
    {"context", NULL, TABLE_COUNT, 0, "context", "contexts.id", OF(piece.context)},
    {"operation", NULL, TABLE_TEXT, 0, "operation", "mmap, mremap or brk",
     .cell = mapping_operation},
    {"protection", NULL, TABLE_TEXT, 0, "protection", "as it was mapped: rwx",
     .cell = mapping_protection},
    {"shared", NULL, TABLE_COUNT, 0, "shared", "1: MAP_SHARED", .cell = mapping_shared},
};
#undef OF

static const struct rows rows = {
    .name = "mappings",
    .about = "address space: what mmap, mremap and brk mapped, in the pieces it was unmapped in",
    ROWS_COLUMNS(columns),
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct query *query;
    struct rowqueue *queue;
    struct rowqueue *out;        /* the same, for the thread inside */
    struct mappinglist mappings; /* of the thread inside, as are these */
    struct error error;
    const struct mapping_life *life; /* NULL: at the end */
    sqlite3_int64 row;
};

/* ---- The pass ---- */

static int hand_out(struct cursor *cursor, struct mapping_life life) {
    struct selection_times view = cursor->query->source.selection->view;
    if (life.piece.born_ns >= view.to_ns || life.freed_ns < view.from_ns) {
        return 0;
    }
    if (life.freed_ns >= view.to_ns) {
        life.freed_ns = UINT64_MAX;
    }
    return rowqueue_put(cursor->out, &life);
}

static int hand_out_ended(void *context, const struct mapping *piece,
                          const struct timeorder_event *by, bool is_last) {
    (void)is_last;
    return hand_out(context,
                    (struct mapping_life){*piece, mappinglist_end_ns(piece, by), by->thread});
}

static int take_event(void *context, const struct timeorder_event *event) {
    struct cursor *cursor = context;
    const struct mappinglist_visitor visitor = {.ended = hand_out_ended, .context = cursor};
    return event->event.kind == EVENT_MAP ? mappinglist_take(&cursor->mappings, event, &visitor)
                                          : 0;
}

/* What was never unmapped, by address. */
static int hand_out_mapped(struct cursor *cursor) {
    int result = 0;
    for (size_t i = 0; result == 0 && i < cursor->mappings.count; i++) {
        result = hand_out(cursor, (struct mapping_life){cursor->mappings.items[i], UINT64_MAX, 0});
    }
    return result;
}

static int produce(struct rowqueue *queue, void *argument) {
    struct cursor *cursor = argument;
    const struct query_source *source = &cursor->query->source;
    struct lives_visitor visitor = {.other = take_event, .context = cursor};
    struct replay_options options = {0};
    int result;
    cursor->out = queue;
    if (source->replay != NULL) {
        options = *source->replay;
    }
    options.cancel = rowqueue_cancel(queue);
    atomic_fetch_add(&cursor->query->passes, 1);
    error_set(&cursor->error, "out of memory");
    result = lives_visit(source->parts, source->whole, &visitor, &options, &cursor->error);
    if (result == 0) {
        result = hand_out_mapped(cursor);
    }
    mappinglist_free(&cursor->mappings);
    return result;
}

/* ---- Cursors ---- */

static int best_index(sqlite3_vtab *view, sqlite3_index_info *info) {
    enum { MAPPINGS = 1000 };
    const struct query *query = ((const struct vtable_view *)view)->query;
    info->estimatedRows = MAPPINGS;
    info->estimatedCost = (double)query->source.whole->totals.allocations + MAPPINGS;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base) {
    struct cursor *cursor = (struct cursor *)base;
    rowqueue_close(cursor->queue);
    return vtable_close(base);
}

/* Mappings pass the session's filters if their call paths do. */
static bool is_selected(const struct cursor *cursor) {
    return model_find(cursor->query->source.model, cursor->life->piece.context) != NULL;
}

static int next(sqlite3_vtab_cursor *base) {
    struct cursor *cursor = (struct cursor *)base;
    const void *row = NULL;
    int result;
    do {
        result = rowqueue_next(cursor->queue, &cursor->query->interrupted, &row);
        cursor->life = row;
    } while (result == 1 && !is_selected(cursor));
    cursor->row++;
    if (result == 1) {
        return SQLITE_OK;
    }
    cursor->life = NULL;
    if (result == 0 && rowqueue_result(cursor->queue) == -1) {
        return vtable_fail(base->pVtab, "%s", cursor->error.message);
    }
    return result == 0 ? SQLITE_OK : SQLITE_INTERRUPT;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                  sqlite3_value **argv) {
    struct cursor *cursor = (struct cursor *)base;
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    cursor->query = ((struct vtable_view *)base->pVtab)->query;
    rowqueue_close(cursor->queue);
    cursor->queue = NULL;
    cursor->life = NULL;
    cursor->row = 0;
    if (cursor->query->source.parts.count == 0) {
        return vtable_fail(base->pVtab,
                           "a profile has no single mappings, only sums of call paths: "
                           "make a recording with `memtrace record`");
    }
    cursor->queue = rowqueue_start(sizeof(struct mapping_life), produce, cursor);
    return cursor->queue != NULL ? next(base) : SQLITE_NOMEM;
}

static int at_end(sqlite3_vtab_cursor *cursor) {
    return ((const struct cursor *)cursor)->life == NULL;
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    const struct cursor *cursor = (const struct cursor *)base;
    vtable_put(cursor->query, &rows, cursor->life, number, out);
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
    *id = ((const struct cursor *)cursor)->row;
    return SQLITE_OK;
}

static const sqlite3_module module = VTABLE_MODULE(close_cursor, column);

static const char *const indices[] = {"context", NULL};

const struct vtable vtable_mappings = {
    .rows = &rows,
    .indices = indices,
    .module = &module,
    .cursor_size = sizeof(struct cursor),
};
