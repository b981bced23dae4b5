/* SPDX-License-Identifier: MIT */
/*
 * blocktables.c: the tables whose rows stand in blocks of their own in a recording: smaps (what
 * the kernel said of each mapping at some moments) and samples (what it said of the process). One
 * block at a time is in memory. Profiles have none.
 */
#include "analyze/query/vtable.h"

#include <string.h>

enum {
    SMAPS_TIME,
    SMAPS_ADDRESS,
    SMAPS_SIZE,
    SMAPS_OFFSET,
    SMAPS_RESIDENT,
    SMAPS_DIRTY,
    SMAPS_SWAP,
    SMAPS_PROTECTION,
    SMAPS_SHARED,
    SMAPS_NAME,
};

static const struct vtable_column smaps_columns[] = {
    [SMAPS_TIME] = {"time", "INTEGER", "ns since the program's start"},
    [SMAPS_ADDRESS] = {"address", "INTEGER", ""},
    [SMAPS_SIZE] = {"size", "INTEGER", "bytes of address space"},
    [SMAPS_OFFSET] = {"offset", "INTEGER", "in the file that is mapped"},
    [SMAPS_RESIDENT] = {"resident_bytes", "INTEGER", "in memory"},
    [SMAPS_DIRTY] = {"dirty_bytes", "INTEGER", "changed"},
    [SMAPS_SWAP] = {"swap_bytes", "INTEGER", "swapped out"},
    [SMAPS_PROTECTION] = {"protection", "TEXT", "rwx"},
    [SMAPS_SHARED] = {"shared", "INTEGER", "1: shared with other processes"},
    [SMAPS_NAME] = {"name", "TEXT", "file, [heap], [stack]; NULL: none"},
};

static const struct vtable_column samples_columns[] = {
    {"time", "INTEGER", "ns since the program's start"},
    {"resident_bytes", "INTEGER", "of the process"},
    {"swap_bytes", "INTEGER", "of the process"},
    {"virtual_bytes", "INTEGER", "of the process"},
    {"live_bytes", "INTEGER", "heap, as the program counted it"},
    {"cgroup_bytes", "INTEGER", "of the process's control group; 0: unknown"},
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

/* Goes to the first record inside the session's view, from the present one on. */
static void find_record(struct cursor *cursor) {
    const struct selection_times *view = &cursor->source->selection->view;
    while (cursor->items != 0) {
        uint64_t time_ns = time_of(cursor);
        if (time_ns >= view->from_ns && time_ns < view->to_ns) {
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

/* The name behind the block's array. */
static void put_name(const struct cursor *cursor, uint32_t offset, sqlite3_context *out) {
    size_t names = entry_of(cursor)->block.items * sizeof(struct memtrace_mapping);
    size_t at = names + offset;
    if (at < cursor->buffer.size && cursor->buffer.bytes[at] != '\0') {
        const char *text = (const char *)cursor->buffer.bytes + at;
        size_t length = strnlen(text, cursor->buffer.size - at);
        sqlite3_result_text64(out, text, length, SQLITE_TRANSIENT, SQLITE_UTF8);
    }
}

static int smaps_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    enum { SHARED = 8 };
    const struct cursor *cursor = (const struct cursor *)base;
    struct memtrace_mapping mapping;
    memcpy(&mapping, cursor->buffer.bytes + cursor->item * sizeof mapping, sizeof mapping);
    switch (number) {
    case SMAPS_TIME:
        vtable_put_number(out, time_of(cursor));
        break;
    case SMAPS_ADDRESS:
        vtable_put_number(out, mapping.start);
        break;
    case SMAPS_SIZE:
        vtable_put_number(out, mapping.end - mapping.start);
        break;
    case SMAPS_OFFSET:
        vtable_put_number(out, mapping.offset);
        break;
    case SMAPS_RESIDENT:
        vtable_put_number(out, mapping.resident_bytes);
        break;
    case SMAPS_DIRTY:
        vtable_put_number(out, mapping.dirty_bytes);
        break;
    case SMAPS_SWAP:
        vtable_put_number(out, mapping.swap_bytes);
        break;
    case SMAPS_PROTECTION:
        vtable_put_protection(out, mapping.protection);
        break;
    case SMAPS_SHARED:
        vtable_put_number(out, (mapping.protection & SHARED) != 0);
        break;
    default:
        put_name(cursor, mapping.name, out);
        break;
    }
    return SQLITE_OK;
}

static int samples_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    const struct cursor *cursor = (const struct cursor *)base;
    struct memtrace_sample sample;
    memcpy(&sample, cursor->buffer.bytes + cursor->item * sizeof sample, sizeof sample);
    const uint64_t numbers[] = {sample.time_ns,       sample.resident_bytes, sample.swap_bytes,
                                sample.virtual_bytes, sample.live_bytes,     sample.cgroup_bytes};
    vtable_put_number(out, numbers[number]);
    return SQLITE_OK;
}

static const sqlite3_module smaps_module = VTABLE_MODULE(close_cursor, smaps_column);
static const sqlite3_module samples_module = VTABLE_MODULE(close_cursor, samples_column);

static const char *const smaps_indices[] = {"time", NULL};

const struct vtable vtable_smaps = {
    .name = "smaps",
    .about = "what the kernel said of each mapping at some moments of a recording",
    VTABLE_COLUMNS(smaps_columns),
    .indices = smaps_indices,
    .module = &smaps_module,
    .cursor_size = sizeof(struct cursor),
};

const struct vtable vtable_samples = {
    .name = "samples",
    .about = "what the kernel said of the process's memory over a recording",
    VTABLE_COLUMNS(samples_columns),
    .module = &samples_module,
    .cursor_size = sizeof(struct cursor),
};
