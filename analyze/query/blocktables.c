/* SPDX-License-Identifier: MIT */
/*
 * blocktables.c: the tables that read a recording's blocks: mappings, the address space that the
 * program mapped, by a pass over the events (a session's filters of contexts count, and its view;
 * filters of blocks do not); smaps (what the kernel said of each mapping at some moments) and
 * samples (what it said of the process), whose rows stand in blocks of their own, one of which at a
 * time is in memory. Profiles have none of them.
 */
#include "analyze/base/job.h"
#include "analyze/query/vtable.h"
#include "analyze/replay/lives.h"
#include "analyze/replay/mappinglist.h"

#include <string.h>
#include <sys/mman.h>

/* ---- mappings ---- */

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

static struct table_cell cell_of_protection(uint32_t protection) {
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
CELL(protection, cell_of_protection(life->piece.protection))
CELL(shared, table_number((life->piece.flags & MAP_SHARED) != 0))
#undef CELL

#define OF(member) ROWS_FIELD(struct mapping_life, member)
static const struct table_column mappings_columns[] = {
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

static const struct rows mappings_rows = {
    .name = "mappings",
    .about = "address space: what mmap, mremap and brk mapped, in the pieces it was unmapped in",
    ROWS_COLUMNS(mappings_columns),
};

struct mappings_cursor {
    sqlite3_vtab_cursor base;
    struct query *query;
    struct rowqueue *queue;
    struct rowqueue *out;            /* the same, for the thread inside */
    struct mappinglist mappings;     /* of the thread inside */
    const struct mapping_life *life; /* NULL: at the end */
    sqlite3_int64 row;
};

/* ---- The pass of mappings ---- */

static int mappings_hand_out(struct mappings_cursor *cursor, struct mapping_life life) {
    struct selection_times view = cursor->query->source.selection->view;
    if (life.piece.born_ns >= view.to_ns || life.freed_ns < view.from_ns) {
        return 0;
    }
    if (life.freed_ns >= view.to_ns) {
        life.freed_ns = UINT64_MAX;
    }
    return rowqueue_put(cursor->out, &life);
}

static int mappings_hand_out_ended(void *context, const struct mapping *piece,
                                   const struct timeorder_event *by, bool is_last) {
    (void)is_last;
    return mappings_hand_out(
        context, (struct mapping_life){*piece, mappinglist_end_ns(piece, by), by->thread});
}

static int mappings_take_event(void *context, const struct timeorder_event *event) {
    struct mappings_cursor *cursor = context;
    const struct mappinglist_visitor visitor = {.ended = mappings_hand_out_ended,
                                                .context = cursor};
    return event->event.kind == EVENT_MAP ? mappinglist_take(&cursor->mappings, event, &visitor)
                                          : 0;
}

static void mappings_produce(struct rowqueue *queue, void *argument) {
    struct mappings_cursor *cursor = argument;
    const struct query_source *source = &cursor->query->source;
    const struct lives_visitor visitor = {.other = mappings_take_event, .context = cursor};
    const struct replay_options options = vtable_replay(cursor->query, queue);
    struct error error;
    int result;
    cursor->out = queue;
    atomic_fetch_add(&cursor->query->passes, 1);
    error_set(&error, "out of memory");
    result = lives_visit(source->parts, source->whole, &visitor, &options, &error);
    /* What was never unmapped, by address. */
    for (size_t i = 0; result == 0 && i < cursor->mappings.count; i++) {
        result = mappings_hand_out(cursor,
                                   (struct mapping_life){cursor->mappings.items[i], UINT64_MAX, 0});
    }
    cursor->mappings = (struct mappinglist){0}; /* it goes with its job */
    if (result == -1) {
        job_fail_as(&error);
    }
}

static int mappings_best_index(sqlite3_vtab *view, sqlite3_index_info *info) {
    enum { MAPPINGS = 1000 };
    const struct query *query = ((const struct vtable_view *)view)->query;
    info->estimatedRows = MAPPINGS;
    info->estimatedCost = (double)query->source.whole->totals.allocations + MAPPINGS;
    return SQLITE_OK;
}

static int mappings_close(sqlite3_vtab_cursor *base) {
    rowqueue_close(((struct mappings_cursor *)base)->queue);
    return vtable_close(base);
}

/* Mappings pass the session's filters if their call paths do. */
static int mappings_next(sqlite3_vtab_cursor *base) {
    struct mappings_cursor *cursor = (struct mappings_cursor *)base;
    const void *row = NULL;
    int result;
    do {
        result = vtable_next_row(base->pVtab, cursor->queue, &row);
        cursor->life = row;
    } while (row != NULL &&
             model_find(cursor->query->source.model, cursor->life->piece.context) == NULL);
    cursor->row++;
    return result;
}

static int mappings_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                           sqlite3_value **argv) {
    struct mappings_cursor *cursor = (struct mappings_cursor *)base;
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    rowqueue_close(cursor->queue);
    *cursor = (struct mappings_cursor){.base = *base,
                                       .query = ((struct vtable_view *)base->pVtab)->query};
    if (cursor->query->source.parts.count == 0) {
        return vtable_fail(base->pVtab,
                           "a profile has no single mappings, only sums of call paths: "
                           "make a recording with `memtrace record`");
    }
    cursor->queue = rowqueue_start(sizeof(struct mapping_life), mappings_produce, cursor);
    return cursor->queue != NULL ? mappings_next(base) : SQLITE_NOMEM;
}

static int mappings_at_end(sqlite3_vtab_cursor *cursor) {
    return ((const struct mappings_cursor *)cursor)->life == NULL;
}

static int mappings_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    const struct mappings_cursor *cursor = (const struct mappings_cursor *)base;
    vtable_put(cursor->query, &mappings_rows, cursor->life, number, out);
    return SQLITE_OK;
}

static int mappings_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
    *id = ((const struct mappings_cursor *)cursor)->row;
    return SQLITE_OK;
}

static const sqlite3_module mappings_module =
    VTABLE_MODULE(mappings, mappings_close, mappings_column);

static const char *const mappings_indices[] = {"context", NULL};

const struct vtable vtable_mappings = {
    .rows = &mappings_rows,
    .indices = mappings_indices,
    .module = &mappings_module,
    .cursor_size = sizeof(struct mappings_cursor),
};

/* ---- smaps and samples ---- */

/* A record of `smaps`. */
struct smaps_row {
    struct memtrace_mapping mapping;
    uint64_t time_ns;
    const char *name; /* NULL: it has none */
    size_t name_most; /* bytes that the block has from there on */
};

#define CELL(name, value)                                                                          \
    static struct table_cell smaps_##name(const struct rows_of *of, const void *record) {          \
        const struct smaps_row *row = record;                                                      \
        (void)of;                                                                                  \
        return value;                                                                              \
    }
enum { SHARED = 8 };
CELL(size, table_number(row->mapping.end - row->mapping.start))
CELL(protection, cell_of_protection(row->mapping.protection))
CELL(shared, table_number((row->mapping.protection & SHARED) != 0))
CELL(name, row->name != NULL ? table_made_text(strndup(row->name, row->name_most)) : table_none())
#undef CELL

#define OF(member) ROWS_FIELD(struct smaps_row, member)
static const struct table_column smaps_columns[] = {
    {"time_ns", NULL, TABLE_DURATION, 0, "time", "ns since the program's start", OF(time_ns)},
    {"address", NULL, TABLE_ADDRESS, 0, "address", "", OF(mapping.start)},
    {"size", NULL, TABLE_BYTES, 0, "size", "bytes of address space", .cell = smaps_size},
    {"offset", NULL, TABLE_COUNT, 0, "offset", "in the file that is mapped", OF(mapping.offset)},
    {"resident_bytes", NULL, TABLE_BYTES, 0, "resident_bytes", "in memory",
     OF(mapping.resident_bytes)},
    {"dirty_bytes", NULL, TABLE_BYTES, 0, "dirty_bytes", "changed", OF(mapping.dirty_bytes)},
    {"swap_bytes", NULL, TABLE_BYTES, 0, "swap_bytes", "swapped out", OF(mapping.swap_bytes)},
    {"protection", NULL, TABLE_TEXT, 0, "protection", "rwx", .cell = smaps_protection},
    {"shared", NULL, TABLE_COUNT, 0, "shared", "1: shared with other processes",
     .cell = smaps_shared},
    {"name", NULL, TABLE_TEXT, 0, "name", "file, [heap], [stack]; NULL: none", .cell = smaps_name},
};
#undef OF

static const struct rows smaps_rows = {
    .name = "smaps",
    .about = "what the kernel said of each mapping at some moments of a recording",
    ROWS_COLUMNS(smaps_columns),
};

#define OF(member) ROWS_FIELD(struct memtrace_sample, member)
static const struct table_column samples_columns[] = {
    {"time_ns", NULL, TABLE_DURATION, 0, "time", "ns since the program's start", OF(time_ns)},
    {"resident_bytes", NULL, TABLE_BYTES, 0, "resident_bytes", "of the process",
     OF(resident_bytes)},
    {"swap_bytes", NULL, TABLE_BYTES, 0, "swap_bytes", "of the process", OF(swap_bytes)},
    {"virtual_bytes", NULL, TABLE_BYTES, 0, "virtual_bytes", "of the process", OF(virtual_bytes)},
    {"live_bytes", NULL, TABLE_BYTES, 0, "live_bytes", "heap, as the program counted it",
     OF(live_bytes)},
    {"cgroup_bytes", NULL, TABLE_BYTES, 0, "cgroup_bytes",
     "of the process's control group; 0: unknown", OF(cgroup_bytes)},
};
#undef OF

static const struct rows samples_rows = {
    .name = "samples",
    .about = "what the kernel said of the process's memory over a recording",
    ROWS_COLUMNS(samples_columns),
};

struct blocks_cursor {
    sqlite3_vtab_cursor base;
    const struct query_source *source;
    enum memtrace_block_kind kind;
    size_t record_size;
    size_t part;
    size_t block; /* of the part */
    size_t item;
    size_t items; /* of the block; 0: none is loaded */
    struct recording_buffer buffer;
    bool no_memory;
    sqlite3_int64 row;
};

/* ---- Blocks ---- */

static const struct recording_entry *blocks_entry_of(const struct blocks_cursor *cursor) {
    return &cursor->source->parts.items[cursor->part]->blocks[cursor->block];
}

/* Whole records of the present block; 0: it is of another kind, or damaged. */
static size_t blocks_load_block(struct blocks_cursor *cursor) {
    const struct memtrace_block_header *block = &blocks_entry_of(cursor)->block;
    size_t most;
    int result = -1;
    if (block->kind == cursor->kind) {
        result = recording_payload(cursor->source->parts.items[cursor->part], cursor->block,
                                   &cursor->buffer, NULL);
        cursor->no_memory |= result == RECORDING_NO_MEMORY;
    }
    if (result != 0) {
        return 0;
    }
    most = cursor->buffer.size / cursor->record_size;
    return block->items < most ? block->items : most;
}

/* Goes to the first block that has records, from the present one on. */
static void blocks_find_block(struct blocks_cursor *cursor) {
    cursor->item = 0;
    for (; cursor->part < cursor->source->parts.count; cursor->part++, cursor->block = 0) {
        const struct recording *recording = cursor->source->parts.items[cursor->part];
        for (; cursor->block < recording->block_count; cursor->block++) {
            cursor->items = blocks_load_block(cursor);
            if (cursor->items != 0) {
                return;
            }
        }
    }
    cursor->items = 0;
}

static uint64_t blocks_time_of(const struct blocks_cursor *cursor) {
    if (cursor->kind == MEMTRACE_BLOCK_SMAPS) {
        return blocks_entry_of(cursor)->block.first_ns;
    }
    return ((const struct memtrace_sample *)cursor->buffer.bytes)[cursor->item].time_ns;
}

static struct memtrace_mapping blocks_mapping_of(const struct blocks_cursor *cursor) {
    struct memtrace_mapping mapping;
    memcpy(&mapping, cursor->buffer.bytes + cursor->item * sizeof mapping, sizeof mapping);
    return mapping;
}

static bool blocks_is_chosen(const struct blocks_cursor *cursor) {
    return cursor->kind != MEMTRACE_BLOCK_SMAPS ||
           selection_has_smaps(&cursor->source->selection->mappings, blocks_time_of(cursor),
                               blocks_mapping_of(cursor).start);
}

/* Goes to the first record inside the session's view, from the present one on. */
static void blocks_find_record(struct blocks_cursor *cursor) {
    const struct selection_times *view = &cursor->source->selection->view;
    while (cursor->items != 0) {
        uint64_t time_ns = blocks_time_of(cursor);
        if (time_ns >= view->from_ns && time_ns < view->to_ns && blocks_is_chosen(cursor)) {
            return;
        }
        if (++cursor->item == cursor->items) {
            cursor->block++;
            blocks_find_block(cursor);
        }
    }
}

/* ---- Cursors ---- */

static int blocks_best_index(sqlite3_vtab *view, sqlite3_index_info *info) {
    enum { RECORDS = 10000 };
    (void)view;
    info->estimatedRows = RECORDS;
    info->estimatedCost = RECORDS;
    return SQLITE_OK;
}

static int blocks_close_cursor(sqlite3_vtab_cursor *base) {
    struct blocks_cursor *cursor = (struct blocks_cursor *)base;
    recording_buffer_free(&cursor->buffer);
    return vtable_close(base);
}

static int blocks_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                         sqlite3_value **argv) {
    const struct vtable_view *view = (const struct vtable_view *)base->pVtab;
    struct blocks_cursor *cursor = (struct blocks_cursor *)base;
    bool is_smaps = view->table == &vtable_smaps;
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    cursor->source = &view->query->source;
    cursor->kind = is_smaps ? MEMTRACE_BLOCK_SMAPS : MEMTRACE_BLOCK_SAMPLES;
    cursor->record_size =
        is_smaps ? sizeof(struct memtrace_mapping) : sizeof(struct memtrace_sample);
    cursor->part = 0;
    cursor->block = 0;
    cursor->row = 1;
    blocks_find_block(cursor);
    blocks_find_record(cursor);
    return cursor->no_memory ? SQLITE_NOMEM : SQLITE_OK;
}

static int blocks_next(sqlite3_vtab_cursor *base) {
    struct blocks_cursor *cursor = (struct blocks_cursor *)base;
    cursor->row++;
    if (++cursor->item == cursor->items) {
        cursor->block++;
        blocks_find_block(cursor);
    }
    blocks_find_record(cursor);
    return cursor->no_memory ? SQLITE_NOMEM : SQLITE_OK;
}

static int blocks_at_end(sqlite3_vtab_cursor *cursor) {
    return ((const struct blocks_cursor *)cursor)->items == 0;
}

static int blocks_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
    *id = ((const struct blocks_cursor *)cursor)->row;
    return SQLITE_OK;
}

/* ---- Values ---- */

static const struct query *blocks_query(const sqlite3_vtab_cursor *cursor) {
    return ((const struct vtable_view *)cursor->pVtab)->query;
}

/* Names stand behind the block's array. */
static int smaps_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    const struct blocks_cursor *cursor = (const struct blocks_cursor *)base;
    struct smaps_row row = {.mapping = blocks_mapping_of(cursor),
                            .time_ns = blocks_time_of(cursor)};
    size_t at;
    at = blocks_entry_of(cursor)->block.items * sizeof row.mapping + row.mapping.name;
    if (at < cursor->buffer.size && cursor->buffer.bytes[at] != '\0') {
        row.name = (const char *)cursor->buffer.bytes + at;
        row.name_most = cursor->buffer.size - at;
    }
    vtable_put(blocks_query(base), &smaps_rows, &row, number, out);
    return SQLITE_OK;
}

static int samples_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    const struct blocks_cursor *cursor = (const struct blocks_cursor *)base;
    struct memtrace_sample sample;
    memcpy(&sample, cursor->buffer.bytes + cursor->item * sizeof sample, sizeof sample);
    vtable_put(blocks_query(base), &samples_rows, &sample, number, out);
    return SQLITE_OK;
}

static const sqlite3_module smaps_module = VTABLE_MODULE(blocks, blocks_close_cursor, smaps_column);
static const sqlite3_module samples_module =
    VTABLE_MODULE(blocks, blocks_close_cursor, samples_column);

static const char *const smaps_indices[] = {"time", NULL};

const struct vtable vtable_smaps = {
    .rows = &smaps_rows,
    .indices = smaps_indices,
    .module = &smaps_module,
    .cursor_size = sizeof(struct blocks_cursor),
};

const struct vtable vtable_samples = {
    .rows = &samples_rows,
    .module = &samples_module,
    .cursor_size = sizeof(struct blocks_cursor),
};
