/* SPDX-License-Identifier: MIT */
/* poolroom.c: see poolroom.h. The pools' blocks are visited by address, and beside them what may
 * contain them, so that each table is gone through once. */
#include "runtime/follow/poolroom.h"

#include "runtime/base/sys.h"
#include "runtime/entry/mapping.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/tick.h"
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
    uintptr_t start;
    uint64_t size;
    uint32_t birth_tick; /* of mappings: 0 */
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
    struct interval *mappings; /* by address */
    size_t mapping_count, mapping_room, mapping;
    struct pool_sum *sums; /* by the pool's number */
};

/* --- what a block lies in --------------------------------------------------------------------- */

/* The innermost so far is the one that begins last; of two that begin together the smaller. */
static void keep(struct holder *best, enum place place, const struct heap_block *block) {
    if (best->size == 0 || block->start > best->start ||
        (block->start == best->start && block->size < best->size)) {
        *best = (struct holder){place, block->start, block->size, block->birth_tick};
    }
}

static void look_in(struct holder *best, struct block_search *it, enum place small,
                    uintptr_t address, uintptr_t limit) {
    struct heap_block block;
    int depth = block_search_find(it, address, limit);
    if (block_search_find_small(it, address, limit, &block)) {
        keep(best, small, &block);
    }
    if (depth > 0) {
        enum place large = small == IN_POOL_SMALL ? IN_POOL_LARGE + (enum place)(depth - 1)
                                                  : small + (enum place)1;
        keep(best, large, &it->block[depth - 1]);
    }
}

static void look_in_mappings(struct note *note, struct holder *best, uintptr_t address) {
    while (note->mapping < note->mapping_count && note->mappings[note->mapping].end <= address) {
        note->mapping++;
    }
    if (note->mapping < note->mapping_count && note->mappings[note->mapping].start <= address) {
        const struct interval *range = &note->mappings[note->mapping];
        keep(best, IN_MAPPING,
             &(struct heap_block){.start = range->start, .size = range->end - range->start});
    }
}

static struct holder holder_of(struct note *note, const struct heap_block *block) {
    struct holder best = {.size = 0};
    look_in(&best, &note->heap, IN_SMALL, block->start, block->start + 1);
    look_in(&best, &note->foreign, IN_FOREIGN_SMALL, block->start, block->start + 1);
    look_in(&best, &note->pools, IN_POOL_SMALL, block->start, block->start);
    look_in_mappings(note, &best, block->start);
    return best;
}

/* --- sums ------------------------------------------------------------------------------------- */

static uint32_t pool_of(const struct heap_block *block) {
    struct memtrace_node node = context_read(&runtime.tree, (struct context_id){block->context});
    return node.frame >= MEMTRACE_FRAME_POOL ? (uint32_t)(node.frame - MEMTRACE_FRAME_POOL) : 0;
}

static void count_holder(struct memtrace_pool_room *room, const struct holder *holder) {
    if (holder->place == IN_MAPPING) {
        room->mappings++;
        room->mapping_bytes += holder->size;
    } else if (holder->place >= IN_POOL_SMALL) {
        room->pool_blocks++;
        room->pool_bytes += holder->size;
    } else {
        room->heap_blocks++;
        room->heap_bytes += holder->size;
    }
}

/* One that is older than what it lies in has gone without our being told, with what it lay in. */
static int is_left_over(const struct note *note, const struct heap_block *block,
                        const struct holder *holder) {
    return holder->place != IN_MAPPING &&
           heap_age(holder->birth_tick, note->tick) < heap_age(block->birth_tick, note->tick);
}

static void count(void *argument, const struct heap_block *block) {
    struct note *note = argument;
    uint32_t pool = pool_of(block);
    struct holder holder = holder_of(note, block);
    struct pool_sum *sum;
    if (pool > note->pool_count) {
        return; /* its name came meanwhile */
    }
    sum = &note->sums[pool];
    sum->room.live_blocks++;
    sum->room.live_bytes += block->size;
    if (holder.size == 0 || is_left_over(note, block, &holder)) {
        sum->room.outside_blocks++;
        sum->room.outside_bytes += block->size;
    } else if (sum->last[holder.place] != holder.start) {
        sum->last[holder.place] = holder.start;
        count_holder(&sum->room, &holder);
    }
}

/* --- noting ----------------------------------------------------------------------------------- */

static void count_mapping(void *argument, const struct interval *range) {
    (void)range;
    ((struct note *)argument)->mapping_room++;
}

static void take_mapping(void *argument, const struct interval *range) {
    struct note *note = argument;
    if (note->mapping_count < note->mapping_room) {
        note->mappings[note->mapping_count++] = *range;
    }
}

static void write_down(const struct note *note) {
    struct memtrace_pool_room *rooms =
        space_segment(&runtime.space, MEMTRACE_SEGMENT_POOL_ROOM, 0, 0, sizeof *rooms,
                      MEMTRACE_POOL_ROOM_FIRST + note->pool_count + 1);
    if (rooms == NULL) {
        return;
    }
    for (uint32_t i = 1; i <= note->pool_count; i++) {
        rooms[MEMTRACE_POOL_ROOM_FIRST + i] = note->sums[i].room;
    }
    space_publish(rooms);
}

static void note_all(struct note *note) {
    block_search_begin(&note->heap, &runtime.heap, note->tick);
    block_search_begin(&note->foreign, &runtime.foreign, note->tick);
    block_search_begin(&note->pools, &runtime.pools, note->tick);
    mapping_visit(take_mapping, note);
    block_search_visit(&runtime.pools, note->tick, &note->visited, count, note);
    write_down(note);
}

void poolroom_note(void) {
    static struct note note; /* much for a stack; a process ends once */
    size_t sums;
    size_t mappings;
    note.tick = tick_now();
    note.pool_count = LOAD_ACQUIRE(&runtime.space.header->pool_count);
    note.mapping_count = note.mapping_room = note.mapping = 0;
    note.visited.leaf = NULL;
    if (note.pool_count == 0 || runtime.pools.root == NULL) {
        return;
    }
    mapping_visit(count_mapping, &note);
    note.mapping_room += 64; /* for those that come meanwhile */
    sums = (note.pool_count + 1) * sizeof *note.sums;
    mappings = note.mapping_room * sizeof *note.mappings;
    note.sums = sys_map(sums);
    note.mappings = sys_map(mappings);
    if (note.sums != NULL && note.mappings != NULL) {
        note_all(&note);
    }
    if (note.sums != NULL) {
        sys_unmap(note.sums, sums);
    }
    if (note.mappings != NULL) {
        sys_unmap(note.mappings, mappings);
    }
}
