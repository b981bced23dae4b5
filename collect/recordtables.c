/* SPDX-License-Identifier: MIT */
/* recordtables.c: the tables of a region in its recording. See recordtables.h. */
#include "collect/recordtables.h"

#include "analyze/base/array.h"
#include "analyze/base/scope.h"

#include <stdlib.h>
#include <string.h>

enum { BITS = 64, POOL_LIMIT = MEMTRACE_FRAME_CLASSES - MEMTRACE_FRAME_POOL };

int recordtables_open(struct recordtables *tables, const struct profile *profile) {
    *tables = (struct recordtables){.profile = profile};
    tables->leaves = calloc(RECORDTABLES_LEAVES, sizeof *tables->leaves);
    tables->noted = calloc(RECORDTABLES_CONTEXTS / BITS, sizeof *tables->noted);
    tables->modules = calloc(RECORDTABLES_MODULES, sizeof *tables->modules);
    if (tables->leaves == NULL || tables->noted == NULL || tables->modules == NULL) {
        recordtables_close(tables);
        return -1;
    }
    tables->noted[0] = 1; /* no context: most frees */
    recordtables_refresh(tables);
    return 0;
}

void recordtables_close(struct recordtables *tables) {
    free(tables->leaves);
    free(tables->noted);
    free(tables->modules);
    free(tables->nodes);
    *tables = (struct recordtables){0};
}

void recordtables_refresh(struct recordtables *tables) {
    for (size_t i = 0; i < tables->profile->segment_count; i++) {
        const struct profile_segment *segment = &tables->profile->segments[i];
        if (profile_is_tree(segment) && segment->index < RECORDTABLES_LEAVES &&
            segment->item_count == MEMTRACE_LEAF_ITEMS) {
            tables->leaves[segment->index] = (uint32_t)i + 1;
        }
    }
}

void recordtables_forget(struct recordtables *tables) {
    memset(tables->noted, 0, RECORDTABLES_CONTEXTS / 8);
    tables->noted[0] = 1;
    memset(tables->modules, 0, RECORDTABLES_MODULES * sizeof *tables->modules);
    tables->pool_count = 0;
    tables->node_count = tables->noted_count = 0;
}

int recordtables_resume(struct recordtables *tables, const struct recording *there) {
    struct memtrace_node *nodes = NULL;
    size_t count = 0;
    if (recording_nodes(there, &nodes, &count, NULL) != 0) {
        return -1;
    }
    for (size_t id = 0; id < count && id < RECORDTABLES_CONTEXTS; id++) {
        if (nodes[id].frame != 0) {
            tables->noted[id / BITS] |= UINT64_C(1) << id % BITS;
            tables->noted_count++;
        }
    }
    free(nodes);
    return 0; /* modules and pools are written again: the last ones count */
}

/* --- contexts --------------------------------------------------------------------------------- */

int recordtables_note(struct recordtables *tables, uint32_t context) {
    size_t first = tables->node_count;
    uint32_t id = context;
    while (id != 0 && id < RECORDTABLES_CONTEXTS && !recordtables_has(tables, id)) {
        uint32_t leaf = tables->leaves[id / MEMTRACE_LEAF_ITEMS]; /* 0: not known yet */
        struct memtrace_node node;
        if (leaf == 0 ||
            !profile_node(tables->profile, &tables->profile->segments[leaf - 1],
                          id % MEMTRACE_LEAF_ITEMS, &node) ||
            node.frame == 0 || node.parent >= id) {
            tables->node_count = first;
            return 1;
        }
        if (array_grow(&tables->nodes, &tables->node_room, tables->node_count,
                       sizeof *tables->nodes) != 0) {
            return -1;
        }
        tables->nodes[tables->node_count++] =
            (struct memtrace_recording_node){node.frame, node.parent, id};
        id = node.parent;
    }
    for (size_t i = first; i < tables->node_count; i++) {
        id = tables->nodes[i].id;
        tables->noted[id / BITS] |= UINT64_C(1) << id % BITS;
    }
    tables->noted_count += tables->node_count - first;
    for (size_t last = tables->node_count; first + 1 < last; first++) { /* parents first */
        struct memtrace_recording_node node = tables->nodes[--last];
        tables->nodes[last] = tables->nodes[first];
        tables->nodes[first] = node;
    }
    return 0;
}

/* --- blocks ----------------------------------------------------------------------------------- */

int recordtables_write_nodes(struct recordtables *tables, struct recordfile *file, uint64_t time_ns,
                             struct error *error) {
    size_t count = tables->node_count;
    tables->node_count = 0;
    return recordfile_append_nodes(file, tables->nodes, count, time_ns, error);
}

/* Room for the items of all segments of a kind. NULL: out of memory. */
static void *recordtables_gather(const struct profile *profile, uint32_t kind, size_t item_size) {
    size_t places = 0;
    for (size_t i = 0; i < profile->segment_count; i++) {
        places += profile->segments[i].kind == kind ? profile->segments[i].item_count : 0;
    }
    return malloc((places + 1) * item_size);
}

/* What the file has not yet, or not as it is. */
int recordtables_write_modules(struct recordtables *tables, struct recordfile *file,
                               uint64_t time_ns, struct error *error) {
    struct profile_items at = {.kind = MEMTRACE_SEGMENT_MODULES};
    const struct memtrace_module *module;
    size_t count = 0;
    SCOPE_MEMORY struct memtrace_module *news =
        recordtables_gather(tables->profile, at.kind, sizeof *news);
    if (news == NULL) {
        return error_set(error, "out of memory while recording");
    }
    while ((module = profile_next(tables->profile, &at)) != NULL) {
        /* The id is written after the rest. */
        bool is_there = at.number != 0 && at.number < RECORDTABLES_MODULES &&
                        profile_load_u32(&module->id) == at.number;
        uint64_t state = is_there ? profile_load_u64(&module->unload_ns) + 1 : 0;
        if (is_there && tables->modules[at.number] != state) {
            news[count++] = *module;
            tables->modules[at.number] = state;
        }
    }
    return recordfile_append_items(file, MEMTRACE_BLOCK_MODULES, time_ns, news, count, sizeof *news,
                                   error);
}

/* The program counts a pool before we have looked for the segment that it made for the first one:
 * what is not found yet is written the next time. */
int recordtables_write_pools(struct recordtables *tables, struct recordfile *file, uint64_t time_ns,
                             struct error *error) {
    const struct profile *profile = tables->profile;
    uint32_t known = profile_load_u32(&profile_header(profile)->pool_count);
    struct profile_items at = {.kind = MEMTRACE_SEGMENT_POOLS};
    const struct memtrace_pool *pool;
    size_t count = 0;
    known = known < POOL_LIMIT ? known : POOL_LIMIT;
    if (known <= tables->pool_count) {
        return 0;
    }
    SCOPE_MEMORY struct memtrace_recording_pool *news = calloc(known, sizeof *news);
    if (news == NULL) {
        return error_set(error, "out of memory while recording");
    }
    while ((pool = profile_next(profile, &at)) != NULL) { /* they are numbered from 1 on */
        if (at.number > tables->pool_count && at.number <= known && count < known &&
            pool->name[0] != '\0') {
            news[count].number = (uint32_t)at.number;
            memcpy(news[count++].name, pool->name, sizeof pool->name);
        }
    }
    tables->pool_count = count != 0 ? news[count - 1].number : tables->pool_count;
    return recordfile_append_items(file, MEMTRACE_BLOCK_POOLS, time_ns, news, count, sizeof *news,
                                   error);
}

int recordtables_write_threads(struct recordtables *tables, struct recordfile *file,
                               uint64_t time_ns, struct error *error) {
    struct profile_items at = {.kind = MEMTRACE_SEGMENT_THREADS};
    const struct memtrace_thread_record *thread;
    size_t count = 0;
    SCOPE_MEMORY struct memtrace_thread_record *threads =
        recordtables_gather(tables->profile, at.kind, sizeof *threads);
    if (threads == NULL) {
        return error_set(error, "out of memory while recording");
    }
    while ((thread = profile_next(tables->profile, &at)) != NULL) {
        if (thread->id != 0) {
            threads[count++] = *thread;
        }
    }
    return recordfile_append_items(file, MEMTRACE_BLOCK_THREADS, time_ns, threads, count,
                                   sizeof *threads, error);
}
