/* SPDX-License-Identifier: MIT */
/* poolrows.c: pools, each with what its allocator has given out, and what it holds for that of the
 * heap and of mappings. See rows.h. */
#include "analyze/rows/rows.h"

#include <string.h>

/* One pool. */
struct pool_row {
    const char *name;
    uint64_t allocations;
    uint64_t total_bytes;
    uint64_t frees;
    uint64_t live_blocks;
    uint64_t live_bytes;
    /* Where it lies; UINT64_MAX: not known of what is selected. */
    struct memtrace_pool_room room;
    uint64_t held_bytes;
    uint64_t held_back; /* of these what is no live block of the pool */
};
_Static_assert(sizeof(struct pool_row) <= ROWS_ROOM, "a row has room");

/* Of a context, also where pools stand for the heap (selection_as_heap). */
static bool poolrows_is_of(const struct model_context *context, size_t pool) {
    return context->frame == MEMTRACE_FRAME_POOL + pool;
}

static bool poolrows_is_there(const struct model *model, size_t pool) {
    for (size_t i = 0; i < model->context_count; i++) {
        if (poolrows_is_of(&model->contexts[i], pool)) {
            return true;
        }
    }
    return false;
}

static size_t count_pools(const struct rows_of *of) {
    size_t count = 0;
    for (size_t pool = 0; pool < of->model->pool_count; pool++) {
        count += poolrows_is_there(of->model, pool);
    }
    return count;
}

/* The row'th that is there. */
static size_t pool_at(const struct model *model, size_t row) {
    size_t pool = 0;
    while (pool < model->pool_count && (!poolrows_is_there(model, pool) || row-- != 0)) {
        pool++;
    }
    return pool;
}

static const void *pool_record(const struct rows_of *of, size_t number, void *made) {
    const struct model *model = of->model;
    size_t pool = pool_at(model, number);
    const struct memtrace_pool_room *room =
        pool < model->pool_room_count ? &model->pool_rooms[pool] : NULL;
    struct pool_row *row = made;
    *row = (struct pool_row){.name = "unnamed pool"};
    memset(&row->room, 0xff, sizeof row->room);
    row->held_bytes = row->held_back = UINT64_MAX;
    if (pool < model->pool_count && model->pools[pool][0] != '\0') {
        row->name = model->pools[pool];
    }
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        if (poolrows_is_of(context, pool)) {
            row->allocations += context->allocations;
            row->total_bytes += context->total_bytes;
            row->frees += context->frees;
            row->live_blocks += context->live_blocks;
            row->live_bytes += context->live_bytes;
        }
    }
    /* What lay where is known of the end, and of all of the pool: not of a part of it, or of
     * another time. */
    if (room != NULL && room->live_blocks == row->live_blocks &&
        room->live_bytes == row->live_bytes && !model->live) {
        uint64_t given = row->live_bytes - room->outside_bytes;
        row->room = *room;
        row->held_bytes = room->heap_bytes + room->mapping_bytes + room->pool_bytes;
        /* What overlaps (a damaged file) is none. */
        row->held_back = row->held_bytes > given ? row->held_bytes - given : 0;
    }
    return row;
}

ROWS_CELL(share_cell, struct pool_row, row,
          row->held_bytes != UINT64_MAX && row->held_bytes != 0
              ? table_real(100.0 * (double)row->held_back / (double)row->held_bytes)
              : table_none())

#define OF(member) ROWS_FIELD(struct pool_row, member)
static const struct table_column columns[POOL_COLUMNS] = {
    [POOL_NAME] = {"pool", "pool", TABLE_TEXT, 20, "pool", "its name: contexts.pool", OF(name)},
    [POOL_ALLOCATIONS] = {"allocations", "allocations", TABLE_COUNT, 12, "allocations", "",
                          OF(allocations)},
    [POOL_TOTAL_BYTES] = {"total_bytes", "in total", TABLE_BYTES, 10, "total_bytes",
                          "ever allocated", OF(total_bytes)},
    [POOL_FREES] = {"frees", "frees", TABLE_COUNT, 0, "frees", "", OF(frees)},
    [POOL_LIVE_BLOCKS] = {"live_blocks", "blocks", TABLE_COUNT, 8, "live_blocks", "not freed",
                          OF(live_blocks)},
    [POOL_LIVE_BYTES] = {"live_bytes", "live", TABLE_BYTES, 10, "live_bytes", "", OF(live_bytes)},
    [POOL_HELD_BYTES] = {"held_bytes", "held", TABLE_BYTES, 10, "held_bytes",
                         "of the heap, mappings and other pools: what live blocks of it lie in; "
                         "NULL: not known",
                         OF(held_bytes), .none = TABLE_MOST},
    [POOL_HELD_BACK] = {"held_back_bytes", "held back", TABLE_BYTES, 10, "held_back_bytes",
                        "of these: no live block of the pool", OF(held_back), .none = TABLE_MOST},
    [POOL_HEAP_BYTES] = {"heap_bytes", "in heap", TABLE_BYTES, 10, "heap_bytes",
                         "of held_bytes: blocks of the heap", OF(room.heap_bytes),
                         .none = TABLE_MOST},
    [POOL_HEAP_BLOCKS] = {"heap_blocks", NULL, TABLE_COUNT, 0, "heap_blocks", "how many",
                          OF(room.heap_blocks), .none = TABLE_MOST},
    [POOL_MAPPING_BYTES] = {"mapping_bytes", "in mappings", TABLE_BYTES, 11, "mapping_bytes",
                            "of held_bytes: mappings", OF(room.mapping_bytes), .none = TABLE_MOST},
    [POOL_MAPPINGS] = {"mappings", NULL, TABLE_COUNT, 0, "mappings", "how many", OF(room.mappings),
                       .none = TABLE_MOST},
    [POOL_POOL_BYTES] = {"pool_bytes", "in pools", TABLE_BYTES, 10, "pool_bytes",
                         "of held_bytes: blocks of pools", OF(room.pool_bytes), .none = TABLE_MOST},
    [POOL_POOL_BLOCKS] = {"pool_blocks", NULL, TABLE_COUNT, 0, "pool_blocks", "how many",
                          OF(room.pool_blocks), .none = TABLE_MOST},
    [POOL_OUTSIDE_BYTES] = {"outside_bytes", "elsewhere", TABLE_BYTES, 10, "outside_bytes",
                            "of live_bytes: in none of these", OF(room.outside_bytes),
                            .none = TABLE_MOST},
    [POOL_OUTSIDE_BLOCKS] = {"outside_blocks", NULL, TABLE_COUNT, 0, "outside_blocks",
                             "of live_blocks: the same", OF(room.outside_blocks),
                             .none = TABLE_MOST},
    [POOL_SHARE] = {"held_back_percent", "%", TABLE_PERCENT, 6, .cell = share_cell},
};
#undef OF

const struct rows rows_pools = {
    .name = "pools",
    .about = "allocators of the program's own, and what they hold of its memory",
    ROWS_COLUMNS(columns),
    .count = count_pools,
    .record = pool_record,
};
