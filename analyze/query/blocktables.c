/* SPDX-License-Identifier: MIT */
/*
 * blocktables.c: the tables whose rows stand in blocks of their own in a recording: smaps (what
 * the kernel said of each mapping at some moments) and samples (what it said of the process). One
 * block at a time is in memory. Profiles have none.
 */
#include "analyze/query/vtable.h"

#include <string.h>

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
CELL(protection, vtable_protection(row->mapping.protection))
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

struct cursor {
    sqlite3_vtab_cursor base;
    const struct query_source *source;
    enum memtrace_block_kind kind;
    size_t record_size;
    size_t part;
    size_t block; /* of the part */
    size_t item;
    size_t items; /* of the block; 0: none is loaded */
    struct recording_buffer buffer;
    sqlite3_int64 row;
};

/* ---- Blocks ---- */

static const struct recording_entry *entry_of(const struct cursor *cursor) {
    return &cursor->source->parts.items[cursor->part]->blocks[cursor->block];
}

/* Whole records of the present block; 0: it is of another kind, or damaged. */
static size_t load_block(struct cursor *cursor) {
    const struct memtrace_block_header *block = &entry_of(cursor)->block;
    size_t most;
    if (block->kind != cursor->kind ||
        recording_payload(cursor->source->parts.items[cursor->part], cursor->block, &cursor->buffer,
                          NULL) != 0) {
        return 0;
    }
    most = cursor->buffer.size / cursor->record_size;
    return block->items < most ? block->items : most;
}

/* Goes to the first block that has records, from the present one on. */
static void find_block(struct cursor *cursor) {
    cursor->item = 0;
    for (; cursor->part < cursor->source->parts.count; cursor->part++, cursor->block = 0) {
        const struct recording *recording = cursor->source->parts.items[cursor->part];
        for (; cursor->block < recording->block_count; cursor->block++) {
            cursor->items = load_block(cursor);
            if (cursor->items != 0) {
                return;
            }
        }
    }
    cursor->items = 0;
}

static uint64_t time_of(const struct cursor *cursor) {
    if (cursor->kind == MEMTRACE_BLOCK_SMAPS) {
        return entry_of(cursor)->block.first_ns;
    }
    return ((const struct memtrace_sample *)cursor->buffer.bytes)[cursor->item].time_ns;
}

static struct memtrace_mapping mapping_of(const struct cursor *cursor) {
    struct memtrace_mapping mapping;
    memcpy(&mapping, cursor->buffer.bytes + cursor->item * sizeof mapping, sizeof mapping);
    return mapping;
}

static bool is_chosen(const struct cursor *cursor) {
    return cursor->kind != MEMTRACE_BLOCK_SMAPS ||
           selection_has_smaps(&cursor->source->selection->mappings, time_of(cursor),
                               mapping_of(cursor).start);
}

/* Goes to the first record inside the session's view, from the present one on. */
static void find_record(struct cursor *cursor) {
    const struct selection_times *view = &cursor->source->selection->view;
    while (cursor->items != 0) {
        uint64_t time_ns = time_of(cursor);
        if (time_ns >= view->from_ns && time_ns < view->to_ns && is_chosen(cursor)) {
            return;
        }
        if (++cursor->item == cursor->items) {
            cursor->block++;
            find_block(cursor);
        }
    }
}

/* ---- Cursors ---- */

static int best_index(sqlite3_vtab *view, sqlite3_index_info *info) {
    enum { RECORDS = 10000 };
    (void)view;
    info->estimatedRows = RECORDS;
    info->estimatedCost = RECORDS;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base) {
    struct cursor *cursor = (struct cursor *)base;
    recording_buffer_free(&cursor->buffer);
    return vtable_close(base);
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                  sqlite3_value **argv) {
    const struct vtable_view *view = (const struct vtable_view *)base->pVtab;
    struct cursor *cursor = (struct cursor *)base;
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
    find_block(cursor);
    find_record(cursor);
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base) {
    struct cursor *cursor = (struct cursor *)base;
    cursor->row++;
    if (++cursor->item == cursor->items) {
        cursor->block++;
        find_block(cursor);
    }
    find_record(cursor);
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *cursor) {
    return ((const struct cursor *)cursor)->items == 0;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
    *id = ((const struct cursor *)cursor)->row;
    return SQLITE_OK;
}

/* ---- Values ---- */

static const struct query *query_of(const sqlite3_vtab_cursor *cursor) {
    return ((const struct vtable_view *)cursor->pVtab)->query;
}

/* Names stand behind the block's array. */
static int smaps_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    const struct cursor *cursor = (const struct cursor *)base;
    struct smaps_row row = {.mapping = mapping_of(cursor), .time_ns = time_of(cursor)};
    size_t at;
    at = entry_of(cursor)->block.items * sizeof row.mapping + row.mapping.name;
    if (at < cursor->buffer.size && cursor->buffer.bytes[at] != '\0') {
        row.name = (const char *)cursor->buffer.bytes + at;
        row.name_most = cursor->buffer.size - at;
    }
    vtable_put(query_of(base), &smaps_rows, &row, number, out);
    return SQLITE_OK;
}

static int samples_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    const struct cursor *cursor = (const struct cursor *)base;
    struct memtrace_sample sample;
    memcpy(&sample, cursor->buffer.bytes + cursor->item * sizeof sample, sizeof sample);
    vtable_put(query_of(base), &samples_rows, &sample, number, out);
    return SQLITE_OK;
}

static const sqlite3_module smaps_module = VTABLE_MODULE(close_cursor, smaps_column);
static const sqlite3_module samples_module = VTABLE_MODULE(close_cursor, samples_column);

static const char *const smaps_indices[] = {"time", NULL};

const struct vtable vtable_smaps = {
    .rows = &smaps_rows,
    .indices = smaps_indices,
    .module = &smaps_module,
    .cursor_size = sizeof(struct cursor),
};

const struct vtable vtable_samples = {
    .rows = &samples_rows,
    .module = &samples_module,
    .cursor_size = sizeof(struct cursor),
};
