/* SPDX-License-Identifier: MIT */
/*
 * blocktables.c: the tables that read a recording's blocks: mappings, the address space that the
 * program mapped, by a pass over the events (a session's filters of contexts count, and its view;
 * filters of blocks do not); smaps (what the kernel said of each mapping at some moments, of which
 * one at a time is in memory) and samples (what it said of the process). Profiles have none of
 * them.
 */
#include "analyze/base/job.h"
#include "analyze/query/vtable.h"
#include "analyze/replay/mappinglist.h"
#include "analyze/replay/smaps.h"
#include "analyze/window/recordingtables.h"

#include <sys/mman.h>

static struct table_cell cell_of_protection(uint32_t protection) {
    static const char *const names[] = {"---", "r--", "-w-", "rw-", "--x", "r-x", "-wx", "rwx"};
    return table_text(
        names[((protection & PROT_READ) != 0) | ((protection & PROT_WRITE) != 0) << 1 |
              ((protection & PROT_EXEC) != 0) << 2]);
}

static bool is_in_view(const struct query *query, uint64_t time_ns) {
    const struct selection_times *view = &query->source.selection->view;
    return time_ns >= view->from_ns && time_ns < view->to_ns;
}

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

#define CELL(name, value) ROWS_CELL(mapping_##name, struct mapping_life, life, value)
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
    struct vtable_cursor cursor;
    struct query *query;
    struct rowqueue *queue;
    struct rowqueue *out;        /* the same, for the thread inside */
    struct mappinglist mappings; /* of the thread inside */
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

static int mappings_plan(sqlite3_vtab *view, sqlite3_index_info *info) {
    enum { MAPPINGS = 1000 };
    const struct query *query = ((const struct vtable_view *)view)->query;
    info->estimatedRows = MAPPINGS;
    info->estimatedCost = (double)query->source.whole->totals.allocations + MAPPINGS;
    return SQLITE_OK;
}

static int mappings_begin(struct vtable_cursor *cursor, int number, const char *text, int argc,
                          sqlite3_value **argv) {
    struct mappings_cursor *mine = (struct mappings_cursor *)cursor;
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    mine->query = vtable_query(cursor);
    if (mine->query->source.parts.count == 0) {
        return vtable_fail(cursor->base.pVtab,
                           "a profile has no single mappings, only sums of call paths: "
                           "make a recording with `memtrace record`");
    }
    mine->queue = rowqueue_start(sizeof(struct mapping_life), mappings_produce, mine);
    return mine->queue != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

/* Mappings pass the session's filters if their call paths do. */
static int mappings_next(struct vtable_cursor *cursor) {
    const struct mappings_cursor *mine = (const struct mappings_cursor *)cursor;
    const struct mapping_life *life;
    int result;
    do {
        result = vtable_next_row(cursor, mine->queue);
        life = cursor->record;
    } while (life != NULL && model_find(mine->query->source.model, life->piece.context) == NULL);
    return result;
}

static void mappings_end(struct vtable_cursor *cursor) {
    rowqueue_close(((struct mappings_cursor *)cursor)->queue);
}

static const char *const mappings_indices[] = {"context", NULL};

const struct vtable vtable_mappings = {
    .rows = &mappings_rows,
    .indices = mappings_indices,
    .cursor_size = sizeof(struct mappings_cursor),
    .plan = mappings_plan,
    .begin = mappings_begin,
    .next = mappings_next,
    .end = mappings_end,
};

/* ---- smaps: a block after the other ---- */

struct smaps_row {
    uint64_t time_ns;
    struct smaps_mapping mapping;
};

#define CELL(name, value) ROWS_CELL(smaps_##name, struct smaps_row, row, value)
enum { SHARED = 8 };
CELL(size, table_number(row->mapping.end - row->mapping.start))
CELL(protection, cell_of_protection(row->mapping.protection))
CELL(shared, table_number((row->mapping.protection & SHARED) != 0))
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
    {"name", NULL, TABLE_TEXT, 0, "name", "file, [heap], [stack]; NULL: none", OF(mapping.name),
     .none = TABLE_ZERO},
};
#undef OF

static const struct rows smaps_rows = {
    .name = "smaps",
    .about = "what the kernel said of each mapping at some moments of a recording",
    ROWS_COLUMNS(smaps_columns),
};

struct smaps_cursor {
    struct vtable_cursor cursor;
    size_t part, block; /* the next one of that part */
    struct smaps smaps;
    size_t item;               /* the next one of these */
    struct job_memory *memory; /* theirs */
    struct smaps_row row;
};

/* The next block that has some; without one there are none. A job of its own, as SQLite calls. */
static void smaps_load_next(void *what) {
    struct smaps_cursor *mine = what;
    const struct timeorder_parts parts = vtable_query(&mine->cursor)->source.parts;
    mine->smaps.count = 0;
    mine->item = 0;
    for (; mine->part < parts.count; mine->part++, mine->block = 0) {
        const struct recording *recording = parts.items[mine->part];
        while (mine->block < recording->block_count) {
            size_t block = mine->block++;
            if (recording->blocks[block].block.kind == MEMTRACE_BLOCK_SMAPS) {
                smaps_load(recording, block, &mine->smaps);
            }
            if (mine->smaps.count != 0) {
                return;
            }
        }
    }
}

static int smaps_next(struct vtable_cursor *cursor) {
    struct smaps_cursor *mine = (struct smaps_cursor *)cursor;
    const struct query *query = vtable_query(cursor);
    cursor->record = NULL;
    do {
        for (; mine->item < mine->smaps.count && cursor->record == NULL; mine->item++) {
            mine->row = (struct smaps_row){mine->smaps.time_ns, mine->smaps.mappings[mine->item]};
            if (is_in_view(query, mine->row.time_ns) &&
                selection_has_smaps(&query->source.selection->mappings, mine->row.time_ns,
                                    mine->row.mapping.start)) {
                cursor->record = &mine->row;
            }
        }
        if (cursor->record != NULL) {
            return SQLITE_OK;
        }
        job_free(&mine->memory);
        if (job_run(smaps_load_next, mine, &mine->memory, NULL) != 0) {
            return SQLITE_NOMEM;
        }
    } while (mine->smaps.count != 0);
    return SQLITE_OK;
}

static void smaps_end(struct vtable_cursor *cursor) {
    job_free(&((struct smaps_cursor *)cursor)->memory);
}

static int blocktables_plan(sqlite3_vtab *view, sqlite3_index_info *info) {
    enum { RECORDS = 10000 };
    (void)view;
    info->estimatedRows = RECORDS;
    info->estimatedCost = RECORDS;
    return SQLITE_OK;
}

static const char *const smaps_indices[] = {"time", NULL};

const struct vtable vtable_smaps = {
    .rows = &smaps_rows,
    .indices = smaps_indices,
    .cursor_size = sizeof(struct smaps_cursor),
    .plan = blocktables_plan,
    .next = smaps_next,
    .end = smaps_end,
};

/* ---- samples ---- */

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

struct samples_cursor {
    struct vtable_cursor cursor;
    struct memtrace_sample *samples;
    size_t count, item; /* the next one */
    struct job_memory *memory;
};

static void samples_load(void *what) {
    struct samples_cursor *mine = what;
    mine->samples = recorded_process(vtable_query(&mine->cursor)->source.parts, &mine->count);
}

static int samples_begin(struct vtable_cursor *cursor, int number, const char *text, int argc,
                         sqlite3_value **argv) {
    struct samples_cursor *mine = (struct samples_cursor *)cursor;
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    return job_run(samples_load, mine, &mine->memory, NULL) == 0 ? SQLITE_OK : SQLITE_NOMEM;
}

static int samples_next(struct vtable_cursor *cursor) {
    struct samples_cursor *mine = (struct samples_cursor *)cursor;
    while (mine->item < mine->count &&
           !is_in_view(vtable_query(cursor), mine->samples[mine->item].time_ns)) {
        mine->item++;
    }
    cursor->record = mine->item < mine->count ? &mine->samples[mine->item++] : NULL;
    return SQLITE_OK;
}

static void samples_end(struct vtable_cursor *cursor) {
    job_free(&((struct samples_cursor *)cursor)->memory);
}

const struct vtable vtable_samples = {
    .rows = &samples_rows,
    .cursor_size = sizeof(struct samples_cursor),
    .plan = blocktables_plan,
    .begin = samples_begin,
    .next = samples_next,
    .end = samples_end,
};
