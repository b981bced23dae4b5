/* SPDX-License-Identifier: MIT */
/* poolroom.c: poolroom_note(), see pool.h. The pools' blocks are visited by address, and beside
 * them what may contain them, so that each table is gone through once. */
#include "runtime/follow/pool.h"

#include "runtime/base/sys.h"
#include "runtime/entry/mapping.h"
#include "runtime/heap/block_search.h"

/* What a block may lie in. In each of these places things do not overlap, so by address the blocks
 * of a pool that lie in the same one follow each other there. */
enum place {
    IN_SMALL, /* a block of malloc under 1 KiB */
    IN_LARGE,
    IN_FOREIGN_SMALL, /* of an allocator that stands in for malloc */
    IN_FOREIGN_LARGE,
    IN_MAPPING,
    IN_POOL_SMALL, /* of another pool, or of its own */
    IN_POOL_LARGE, /* the outermost; in that the next; ... */
    PLACES = IN_POOL_LARGE + BLOCK_SEARCH_DEPTH
};

struct holder {
    enum place place;
    struct heap_block block; /* or a mapping, born at tick 0 */
};

struct pool_sum {
    struct memtrace_pool_room room;
    uintptr_t last[PLACES]; /* the newest holder there, which is counted */
};

struct note {
    uint32_t tick;
    uint32_t pool_count;
    struct block_search heap, foreign, pools;
    struct written_pages visited;
    struct interval *mappings;                   /* by address */
    size_t mapping_count, mapping_room, mapping; /* the last: not behind what was looked for */
    struct pool_sum *sums;                       /* by the pool's number */
};

/* --- what a block lies in --------------------------------------------------------------------- */

/* The innermost so far is the one that begins last; of two that begin together the smaller. */
static void room_keep(struct holder *best, enum place place, const struct heap_block *block) {
    if (best->block.size == 0 || block->start > best->block.start ||
        (block->start == best->block.start && block->size < best->block.size)) {
        *best = (struct holder){place, *block};
    }
}

static void room_look_in(struct holder *best, struct block_search *it, enum place small,
                         uintptr_t address, uintptr_t limit) {
    struct heap_block block;
    int depth = block_search_find(it, address, limit);
    if (block_search_find_small(it, address, limit, &block)) {
        room_keep(best, small, &block);
    }
    if (depth > 0) {
        enum place large = small == IN_POOL_SMALL ? IN_POOL_LARGE + (enum place)(depth - 1)
                                                  : small + (enum place)1;
        room_keep(best, large, &it->block[depth - 1]);
    }
}

/* Of size 0: it lies in nothing. */
static struct holder room_find_holder(struct note *note, uintptr_t address) {
    struct holder best = {.block.size = 0};
    room_look_in(&best, &note->heap, IN_SMALL, address, address + 1);
    room_look_in(&best, &note->foreign, IN_FOREIGN_SMALL, address, address + 1);
    room_look_in(&best, &note->pools, IN_POOL_SMALL, address, address);
    while (note->mapping < note->mapping_count && note->mappings[note->mapping].end <= address) {
        note->mapping++;
    }
    if (note->mapping < note->mapping_count && note->mappings[note->mapping].start <= address) {
        const struct interval *range = &note->mappings[note->mapping];
        room_keep(&best, IN_MAPPING,
                  &(struct heap_block){.start = range->start, .size = range->end - range->start});
    }
    return best;
}

/* --- sums ------------------------------------------------------------------------------------- */

static void room_count_holder(struct memtrace_pool_room *room, const struct holder *holder) {
    if (holder->place == IN_MAPPING) {
        room->mappings++;
        room->mapping_bytes += holder->block.size;
    } else if (holder->place >= IN_POOL_SMALL) {
        room->pool_blocks++;
        room->pool_bytes += holder->block.size;
    } else {
        room->heap_blocks++;
        room->heap_bytes += holder->block.size;
    }
}

static void room_count(void *argument, const struct heap_block *block) {
    struct note *note = argument;
    uint32_t pool = pool_of_context(block->context);
    struct holder holder = room_find_holder(note, block->start);
    /* One that is older than what it lies in has gone without our being told, with what it lay in.
     */
    int is_left_over = holder.place != IN_MAPPING && heap_age(holder.block.birth_tick, note->tick) <
                                                         heap_age(block->birth_tick, note->tick);
    struct pool_sum *sum;
    if (pool > note->pool_count) {
        return; /* its name came meanwhile */
    }
    sum = &note->sums[pool];
    sum->room.live_blocks++;
    sum->room.live_bytes += block->size;
    if (holder.block.size == 0 || is_left_over) {
        sum->room.outside_blocks++;
        sum->room.outside_bytes += block->size;
    } else if (sum->last[holder.place] != holder.block.start) {
        sum->last[holder.place] = holder.block.start;
        room_count_holder(&sum->room, &holder);
    }
}

/* --- noting ----------------------------------------------------------------------------------- */

static void room_take_mapping(void *argument, struct interval *range) {
    struct note *note = argument;
    if (note->mapping_count < note->mapping_room) {
        note->mappings[note->mapping_count++] = *range;
    }
}

static void room_note_all(struct note *note) {
    struct memtrace_pool_room *rooms;
    block_search_begin(&note->heap, &runtime.heap, note->tick);
    block_search_begin(&note->foreign, &runtime.foreign, note->tick);
    block_search_begin(&note->pools, &runtime.pools, note->tick);
    mapping_visit(room_take_mapping, note);
    block_search_visit(&runtime.pools, note->tick, &note->visited, room_count, note);
    rooms = space_segment(&runtime.space, MEMTRACE_SEGMENT_POOL_ROOM, 0, 0, sizeof *rooms,
                          MEMTRACE_POOL_ROOM_FIRST + note->pool_count + 1);
    if (rooms != NULL) {
        for (uint32_t i = 1; i <= note->pool_count; i++) {
            rooms[MEMTRACE_POOL_ROOM_FIRST + i] = note->sums[i].room;
        }
        space_publish(rooms);
    }
}

void poolroom_note(void) {
    static struct note note; /* much for a stack; a process ends once */
    size_t sums, all;
    note.tick = tick_now();
    note.pool_count = LOAD_ACQUIRE(&runtime.space.header->pool_count);
    note.mapping_count = note.mapping = 0;
    note.visited.leaf = NULL;
    if (note.pool_count == 0 || runtime.pools.root == NULL) {
        return;
    }
    note.mapping_room = mapping_count() + 64; /* for those that come meanwhile */
    sums = (note.pool_count + 1) * sizeof *note.sums;
    all = sums + note.mapping_room * sizeof *note.mappings;
    note.sums = sys_map(all);
    if (note.sums != NULL) {
        note.mappings = (void *)((char *)note.sums + sums);
        room_note_all(&note);
        sys_unmap(note.sums, all);
    }
}
