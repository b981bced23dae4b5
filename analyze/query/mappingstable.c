/* SPDX-License-Identifier: MIT */
/*
 * mappingstable.c: the table of address space that the program mapped, by a pass over the events. A
 * session's filters of contexts count, and its view; filters of blocks do not.
 */
#include "analyze/query/rowqueue.h"
#include "analyze/query/vtable.h"
#include "analyze/replay/lives.h"
#include "analyze/replay/mappinglist.h"

#include <sys/mman.h>

enum {
    ID,
    ADDRESS,
    SIZE,
    BORN,
    FREED,
    LIFETIME,
    THREAD,
    FREED_BY,
    CONTEXT,
    OPERATION,
    PROTECTION,
    SHARED,
};

static const struct vtable_column columns[] = {
    [ID] = {"id", "INTEGER", "of the mapping, in their order: its pieces share it"},
    [ADDRESS] = {"address", "INTEGER", "where it, or this piece of it, began"},
    [SIZE] = {"size", "INTEGER", "bytes, whole pages"},
    [BORN] = {"born", "INTEGER", "ns since the program's start"},
    [FREED] = {"freed", "INTEGER", "ns; NULL: never unmapped"},
    [LIFETIME] = {"lifetime", "INTEGER", "ns; NULL: never unmapped"},
    [THREAD] = {"thread", "INTEGER", "that mapped it"},
    [FREED_BY] = {"freed_by", "INTEGER", "thread; NULL: never unmapped"},
    [CONTEXT] = {"context", "INTEGER", "contexts.id"},
    [OPERATION] = {"operation", "TEXT", "mmap, mremap or brk"},
    [PROTECTION] = {"protection", "TEXT", "as it was mapped: rwx"},
    [SHARED] = {"shared", "INTEGER", "1: MAP_SHARED"},
};

/* A row: a mapping, or a piece of one that ended by itself. */
struct mapping_life {
    struct mapping piece;
    uint64_t freed_ns; /* UINT64_MAX: it was never unmapped */
    uint32_t freed_by;
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

/* ---- Values ---- */

static const char *operation_name(uint8_t operation) {
    switch (operation) {
    case MEMTRACE_MAP_REMAP:
        return "mremap";
    case MEMTRACE_MAP_BREAK:
        return "brk";
    default:
        return "mmap";
    }
}

void vtable_put_protection(sqlite3_context *out, uint32_t protection) {
    char text[] = {protection & PROT_READ ? 'r' : '-', protection & PROT_WRITE ? 'w' : '-',
                   protection & PROT_EXEC ? 'x' : '-', '\0'};
    vtable_put_text(out, text);
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    const struct mapping_life *life = ((const struct cursor *)base)->life;
    bool has_ended = life->freed_ns != UINT64_MAX;
    switch (number) {
    case ID:
        vtable_put_number(out, life->piece.id);
        break;
    case ADDRESS:
        vtable_put_number(out, life->piece.start);
        break;
    case SIZE:
        vtable_put_number(out, life->piece.end - life->piece.start);
        break;
    case BORN:
        vtable_put_number(out, life->piece.born_ns);
        break;
    case FREED:
        vtable_put_unless(out, life->freed_ns, UINT64_MAX);
        break;
    case LIFETIME:
        vtable_put_unless(out, has_ended ? life->freed_ns - life->piece.born_ns : UINT64_MAX,
                          UINT64_MAX);
        break;
    case THREAD:
        vtable_put_number(out, life->piece.thread);
        break;
    case FREED_BY:
        vtable_put_unless(out, has_ended ? life->freed_by : UINT64_MAX, UINT64_MAX);
        break;
    case CONTEXT:
        vtable_put_number(out, life->piece.context);
        break;
    case OPERATION:
        vtable_put_text(out, operation_name(life->piece.operation));
        break;
    case PROTECTION:
        vtable_put_protection(out, life->piece.protection);
        break;
    default:
        vtable_put_number(out, (life->piece.flags & MAP_SHARED) != 0);
        break;
    }
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
    *id = ((const struct cursor *)cursor)->row;
    return SQLITE_OK;
}

static const sqlite3_module module = VTABLE_MODULE(close_cursor, column);

static const char *const indices[] = {"context", NULL};

const struct vtable vtable_mappings = {
    .name = "mappings",
    .about = "address space: what mmap, mremap and brk mapped, in the pieces it was unmapped in",
    VTABLE_COLUMNS(columns),
    .indices = indices,
    .module = &module,
    .cursor_size = sizeof(struct cursor),
};
