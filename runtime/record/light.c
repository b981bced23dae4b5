/* SPDX-License-Identifier: MIT */
/* light.c: the record and the paths of a light child. See light.h. */
#define _GNU_SOURCE
#include "runtime/record/light.h"

#include "runtime/base/sys.h"

#include <errno.h>

enum {
    PLACE_BITS = 8,
    LEAF_BITS = 24,
    PATHS_UNDER_HEADER = 2, /* items of a segment of paths that lie under its header */
    /* Behind a leaf of records lies a segment of paths that its children share: a page of its own
     * costs a child more than all else that it hands in. Room for 13 paths each. */
    SHARED_BYTES = 6 * MEMTRACE_PAGE_SIZE,
    SHARED_PLACES = SHARED_BYTES / sizeof(struct memtrace_path),
};

/* As it lies in the file and in a child's memory. */
struct leaf {
    union {
        struct memtrace_segment header; /* used: 0, then there may be nothing behind it */
        struct memtrace_process record[LIGHT_RECORDS_PER_LEAF];
        uint8_t page[MEMTRACE_PAGE_SIZE];
    } processes;
    union {
        struct memtrace_segment header; /* published by the first that takes places */
        struct memtrace_path path[SHARED_PLACES];
        uint8_t pages[SHARED_BYTES];
    } shared;
};

/* --- the record ------------------------------------------------------------------------------- */

static void light_make_void(int fd, uint64_t offset) {
    uint16_t none = 0;
    sys_pwrite_all(fd, &none, sizeof none, offset + offsetof(struct memtrace_segment, kind));
}

/* All paths of a file have a bound. */
static int light_take_room(struct memtrace_header *header, uint64_t size) {
    if (__atomic_add_fetch(&header->path_bytes, size, __ATOMIC_RELAXED) <= MEMTRACE_PATHS_MOST) {
        return 1;
    }
    __atomic_fetch_sub(&header->path_bytes, size, __ATOMIC_RELAXED);
    return 0;
}

static void light_give_room_back(struct memtrace_header *header, uint64_t size) {
    __atomic_fetch_sub(&header->path_bytes, size, __ATOMIC_RELAXED);
}

/* A new leaf in the ancestor's file, with room for shared paths or not. 0 or a negative errno. */
static long light_add_leaf(struct space *space, int fd, struct memtrace_header *header,
                           uint32_t index, uint32_t is_shared, uint64_t *offset) {
    struct memtrace_segment processes = {.kind = MEMTRACE_SEGMENT_PROCESSES,
                                         .header_size = sizeof processes,
                                         .index = index,
                                         .size = MEMTRACE_PAGE_SIZE,
                                         .item_size = sizeof(struct memtrace_process),
                                         .item_count = LIGHT_RECORDS_PER_LEAF,
                                         .used = is_shared};
    struct memtrace_segment paths = {.kind = MEMTRACE_SEGMENT_PATHS,
                                     .header_size = sizeof paths,
                                     .size = SHARED_BYTES,
                                     .item_size = sizeof(struct memtrace_path),
                                     .item_count = SHARED_PLACES,
                                     .used = PATHS_UNDER_HEADER};
    const uint32_t magic = MEMTRACE_SEGMENT_MAGIC;
    uint64_t size = is_shared ? sizeof(struct leaf) : MEMTRACE_PAGE_SIZE;
    long result = space_append(space, fd, header, size, offset);
    if (result == 0) {
        result = sys_pwrite_all(fd, &processes, sizeof processes, *offset);
    }
    if (result == 0 && is_shared) {
        result = sys_pwrite_all(fd, &paths, sizeof paths, *offset + MEMTRACE_PAGE_SIZE);
    }
    if (result == 0) { /* whole: published */
        result = sys_pwrite_all(fd, &magic, sizeof magic,
                                *offset + offsetof(struct memtrace_segment, magic));
    }
    return result;
}

/* A place for a record: which of how many leaves, and where that lies. 0 or a negative errno. */
static long light_take_place(struct space *space, int fd, struct memtrace_header *header,
                             uint64_t *taken) {
    uint64_t word = LOAD_ACQUIRE(&header->process_place);
    for (;;) {
        uint32_t leaf = (uint32_t)(word >> PLACE_BITS) & ((1u << LEAF_BITS) - 1);
        uint32_t next = word != 0 ? leaf + 1 : 0;
        uint64_t offset = 0;
        uint64_t first;
        int is_shared;
        long result;
        if (word != 0 && (word & ((1u << PLACE_BITS) - 1)) < LIGHT_RECORDS_PER_LEAF) {
            if (__atomic_compare_exchange_n(&header->process_place, &word, word + 1, 0,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
                *taken = word;
                return 0;
            }
            continue;
        }
        if (next >= LIGHT_LEAVES_MOST) {
            return -EOVERFLOW;
        }
        is_shared = light_take_room(header, SHARED_BYTES);
        result = light_add_leaf(space, fd, header, next, (uint32_t)is_shared, &offset);
        if (result < 0) {
            light_give_room_back(header, is_shared ? SHARED_BYTES : 0);
            return result;
        }
        first = offset / MEMTRACE_PAGE_SIZE << (PLACE_BITS + LEAF_BITS) |
                (uint64_t)next << PLACE_BITS | 1;
        if (__atomic_compare_exchange_n(&header->process_place, &word, first + 1, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            *taken = first;
            return 0;
        }
        light_make_void(fd, offset); /* another was first */
        light_give_room_back(header, is_shared ? SHARED_BYTES : 0);
    }
}

static uint64_t light_now_of(const struct light *light) {
    return sys_clock_ns(CLOCK_MONOTONIC) - light->ancestor->start_monotonic_ns;
}

static void light_name(struct memtrace_process *process) {
    char text[16];
    sys_thread_name(text);
    __builtin_memcpy(process->name, text, sizeof text);
}

long light_open(struct light *light, struct space *space) {
    uint64_t word = 0;
    long fd = space_descriptor(space);
    long result = fd < 0 ? fd : light_take_place(space, (int)fd, light->ancestor, &word);
    uint32_t place = (uint32_t)word & ((1u << PLACE_BITS) - 1);
    uint64_t offset = (word >> (PLACE_BITS + LEAF_BITS)) * MEMTRACE_PAGE_SIZE;
    struct leaf *leaf = result == 0 ? sys_map_file(sizeof *leaf, (int)fd, offset) : NULL;
    sys_close(fd);
    if (result == -EOVERFLOW) { /* without a record; counted as lost at the end */
        return 0;
    }
    if (leaf == NULL) {
        return result < 0 ? result : -ENOMEM;
    }
    light->process = &leaf->processes.record[place];
    light->number =
        ((uint32_t)(word >> PLACE_BITS) & ((1u << LEAF_BITS) - 1)) * LIGHT_RECORDS_PER_LEAF + place;
    light->process->pid = sys_getpid();
    light->process->parent_pid = sys_getppid();
    light->process->start_ns = light_now_of(light);
    light_name(light->process);
    STORE_RELEASE(&light->process->state, (uint32_t)MEMTRACE_PROCESS_RUNNING);
    return 0;
}

int light_is_open(const struct light *light, struct space *space) {
    return LOAD_ACQUIRE(&light->ancestor->state) == MEMTRACE_STATE_RUNNING && space_is_there(space);
}

void light_count(struct light *light, const struct memtrace_counts *counts, uint64_t freed_count,
                 uint64_t freed_bytes) {
    struct memtrace_process *process = light->process;
    uint64_t live = counts->alloc_bytes - (counts->free_bytes - freed_bytes);
    if (process == NULL) {
        return;
    }
    process->inherited_free_count = freed_count;
    process->inherited_free_bytes = freed_bytes;
    process->counts = *counts;
    if (live > process->maximum_bytes) {
        process->maximum_bytes = live;
    }
}

/* --- paths ------------------------------------------------------------------------------------ */

/* What was done in one context. 0: nothing. */
static int light_add_up(const struct light_work *work, uint32_t id, struct memtrace_path *path) {
    const struct ledger_column *column = work->ledger->made;
    struct memtrace_cell *cell;
    *path = (struct memtrace_path){.id = id};
    for (; column != NULL; column = column->next_made) {
        cell = ledger_cell((struct ledger_column *)column, id);
        if (cell == NULL) {
            continue;
        }
        if (column == work->born) {
            path->free_bytes -= cell->alloc_bytes;
            path->free_count -= cell->alloc_count;
        } else {
            path->alloc_bytes += cell->alloc_bytes;
            path->alloc_count += cell->alloc_count;
            path->free_bytes += cell->free_bytes;
            path->free_count += cell->free_count;
        }
    }
    return path->alloc_count != 0 || path->free_count != 0 || path->free_bytes != 0;
}

static int light_has_cells(const struct light_work *work, uint32_t leaf) {
    const struct ledger_column *column = work->ledger->made;
    uint32_t first = leaf * LEDGER_GROUPS_PER_LEAF;
    uint32_t places = context_places(work->tree, leaf);
    int found = 0;
    for (; column != NULL; column = column->next_made) {
        for (uint32_t i = 0; i * MEMTRACE_GROUP_ITEMS < places; i++) {
            found |= column->group[first + i] != NULL;
        }
    }
    return found;
}

/* The paths of one leaf of the tree, and the nodes in it that are not the ancestor's. */
static uint32_t light_collect_leaf(const struct light_work *work, uint32_t leaf,
                                   struct memtrace_path *to) {
    uint32_t first = leaf * MEMTRACE_LEAF_ITEMS;
    uint32_t end = first + context_places(work->tree, leaf);
    uint32_t count = 0;
    for (uint32_t id = first + MEMTRACE_FIRST_CONTEXT; id < end; id++) {
        struct memtrace_node node = context_read(work->tree, (struct context_id){id});
        struct memtrace_path path;
        int is_used = light_add_up(work, id, &path);
        if (context_is_own(work->tree, id) && node.frame != 0) {
            path.frame = node.frame;
            path.parent = node.parent;
            is_used = 1;
        }
        if (is_used && to != NULL) {
            to[count] = path;
        }
        count += (uint32_t)is_used;
    }
    return count;
}

/* In the order of ids, in which parents come first. `to`: NULL to count them. */
static uint32_t light_collect(const struct light_work *work, struct memtrace_path *to) {
    const struct context_tree *tree = work->tree;
    uint32_t count = 0;
    for (uint32_t leaf = 0; leaf < tree->leaves && leaf < CONTEXT_LEAVES; leaf++) {
        uint32_t last = leaf * MEMTRACE_LEAF_ITEMS + MEMTRACE_LEAF_ITEMS - 1;
        if (tree->leaf[leaf] != NULL &&
            (light_has_cells(work, leaf) || context_is_own(tree, last))) {
            count += light_collect_leaf(work, leaf, to != NULL ? to + count : NULL);
        }
    }
    return count;
}

static struct leaf *light_leaf(const struct light *light) {
    return (struct leaf *)((uintptr_t)light->process & ~(uintptr_t)(MEMTRACE_PAGE_SIZE - 1));
}

/* Among those that the leaf's children share, if there are places for these and their head. */
static int light_hand_in_shared(struct light *light, const struct light_work *work,
                                uint32_t count) {
    struct leaf *leaf = light_leaf(light);
    struct memtrace_segment *shared = &leaf->shared.header;
    struct memtrace_path *head;
    uint32_t first;
    if (leaf->processes.header.used == 0 || count >= SHARED_PLACES ||
        LOAD_RELAXED(&shared->used) + count + 1 > SHARED_PLACES) {
        return 0;
    }
    first = __atomic_fetch_add(&shared->used, count + 1, __ATOMIC_RELAXED);
    if (first + count + 1 > SHARED_PLACES) {
        return 0;
    }
    head = &leaf->shared.path[first];
    light_collect(work, head + 1);
    head->parent = count;
    head->id = light->number;
    STORE_RELEASE(&head->frame, MEMTRACE_PATHS_HEAD);
    STORE_RELEASE(&shared->magic, MEMTRACE_SEGMENT_MAGIC);
    light->head = head;
    return 1;
}

/* A segment of its own, for more. */
static int light_hand_in_segment(struct light *light, const struct light_work *work,
                                 uint32_t count) {
    uint64_t bytes = (uint64_t)(count + PATHS_UNDER_HEADER) * sizeof(struct memtrace_path);
    uint64_t size = (bytes + MEMTRACE_PAGE_SIZE - 1) & ~(uint64_t)(MEMTRACE_PAGE_SIZE - 1);
    struct memtrace_path *paths;
    struct memtrace_segment *segment;
    if (!light_take_room(light->ancestor, size)) {
        return 0;
    }
    paths = sys_map(size);
    if (paths != NULL) {
        segment = (struct memtrace_segment *)paths;
        *segment = (struct memtrace_segment){.kind = MEMTRACE_SEGMENT_PATHS,
                                             .header_size = sizeof *segment,
                                             .owner = light->number,
                                             .size = size,
                                             .item_size = sizeof *paths,
                                             .item_count = count + PATHS_UNDER_HEADER};
        light_collect(work, paths + PATHS_UNDER_HEADER);
        if (space_append_segment(work->space, light->ancestor, segment, &light->paths_at) == 0) {
            light->paths_size = size;
        }
        sys_unmap(paths, size);
    }
    if (light->paths_size == 0) {
        light_give_room_back(light->ancestor, size);
        return 0;
    }
    return 1;
}

void light_hand_in(struct light *light, const struct light_work *work,
                   enum memtrace_process_state state) {
    struct memtrace_process *process = light->process;
    uint32_t count;
    uint64_t lost = memtrace_lost_sum(work->space->header);
    if (process == NULL) {
        __atomic_fetch_add(&light->ancestor->lost[MEMTRACE_LOST_EVENTS], work->alloc_count,
                           __ATOMIC_RELAXED);
        return;
    }
    count = light_collect(work, NULL);
    if (count != 0) {
        int is_kept =
            light_hand_in_shared(light, work, count) || light_hand_in_segment(light, work, count);
        STORE_RELAXED(&process->path_count, is_kept ? count : 0);
        lost += !is_kept;
    }
    process->lost = lost;
    process->end_ns = light_now_of(light);
    light_name(process);
    STORE_RELEASE(&process->state, (uint32_t)state);
}

void light_take_back(struct light *light, struct space *space) {
    if (light->process == NULL) {
        return;
    }
    STORE_RELEASE(&light->process->state, (uint32_t)MEMTRACE_PROCESS_RUNNING);
    STORE_RELAXED(&light->process->path_count, 0u);
    light->process->end_ns = 0;
    if (light->paths_size != 0) {
        long fd = space_descriptor(space);
        if (fd >= 0) {
            light_make_void((int)fd, light->paths_at);
            sys_close(fd);
        }
        light_give_room_back(light->ancestor, light->paths_size);
        light->paths_size = 0;
    }
    if (light->head != NULL) {
        STORE_RELEASE(&light->head->id, 0u);
        light->head = NULL;
    }
}

void light_close(struct light *light, int grown) {
    if (light->process != NULL) {
        struct leaf *leaf = light_leaf(light);
        if (grown) {
            STORE_RELEASE(&light->process->state, (uint32_t)MEMTRACE_PROCESS_GROWN);
        }
        sys_map_at(leaf, sizeof leaf->processes);
        sys_unmap(&leaf->shared, sizeof leaf->shared);
    }
    if (grown && light->ancestor != NULL) {
        sys_unmap(light->ancestor, MEMTRACE_PAGE_SIZE);
        light->ancestor = NULL;
    }
    light->process = NULL;
    light->head = NULL;
    light->number = 0;
    light->paths_size = 0;
}
