/* SPDX-License-Identifier: MIT */
/* mergechildren.c: see mergechildren.h. */
#include "collect/transform/mergechildren.h"

#include <stdlib.h>
#include <string.h>

enum { HIDDEN_PATHS = 2 }; /* the places of a segment of paths that lie under its header */

void mergechildren_free(struct mergechildren *children) {
    free(children->records);
    free(children->paths);
    *children = (struct mergechildren){0};
}

static struct memtrace_process record_of(const struct model_child *child, uint64_t shift_ns) {
    struct memtrace_process record = {
        .pid = child->pid,
        .parent_pid = child->parent_pid,
        .state = child->execed  ? MEMTRACE_PROCESS_EXECED
                 : child->ended ? MEMTRACE_PROCESS_ENDED
                                : MEMTRACE_PROCESS_RUNNING,
        .path_count = (uint32_t)child->path_count,
        .start_ns = child->start_ns + shift_ns,
        .end_ns = child->end_ns != 0 ? child->end_ns + shift_ns : 0,
        .alloc_count = child->allocations,
        .alloc_bytes = child->total_bytes,
        .free_count = child->frees,
        .free_bytes = child->freed_bytes,
        .maximum_bytes = child->maximum_bytes,
        .lost = child->lost,
    };
    memcpy(record.name, child->name, sizeof record.name);
    return record;
}

/* What children made themselves is of the new profile's tree, too: all paths name contexts of it.
 */
static struct memtrace_path path_of(const struct model_child_path *path,
                                    const struct mergesource *source) {
    return (struct memtrace_path){.id = mergesource_context(source, path->node),
                                  .alloc_bytes = path->total_bytes,
                                  .alloc_count = path->allocations,
                                  .free_bytes = path->freed_bytes,
                                  .free_count = path->frees};
}

int mergechildren_add(struct mergechildren *children, const struct model *model,
                      const struct mergesource *source) {
    struct memtrace_process *records;
    struct memtrace_path *paths;
    if (model->child_count == 0) {
        return 0;
    }
    records =
        reallocarray(children->records, children->count + model->child_count + 1, sizeof *records);
    children->records = records != NULL ? records : children->records;
    paths = reallocarray(children->paths, children->path_count + model->child_path_count + 1,
                         sizeof *paths);
    children->paths = paths != NULL ? paths : children->paths;
    if (records == NULL || paths == NULL) {
        return -1;
    }
    if (children->count == 0) {
        records[children->count++] = (struct memtrace_process){0};
    }
    for (size_t i = 0; i < model->child_count; i++) {
        const struct model_child *child = &model->children[i];
        records[children->count++] = record_of(child, source->shift_ns);
        for (size_t path = 0; path < child->path_count; path++) {
            paths[children->path_count++] =
                path_of(&model->child_paths[child->first_path + path], source);
        }
    }
    return 0;
}

int mergechildren_write(const struct mergechildren *children, struct profilewrite *write) {
    const struct memtrace_path *from = children->paths;
    if (children->count == 0) {
        return 0;
    }
    profilewrite_segment(write, MEMTRACE_SEGMENT_PROCESSES, 0, 0, children->records,
                         sizeof *children->records, children->count);
    for (size_t number = 1; number < children->count; number++) {
        size_t count = children->records[number].path_count;
        struct memtrace_path *paths = calloc(count + HIDDEN_PATHS, sizeof *paths);
        if (paths == NULL) {
            return -1;
        }
        if (count != 0) {
            memcpy(paths + HIDDEN_PATHS, from, count * sizeof *paths);
            profilewrite_segment(write, MEMTRACE_SEGMENT_PATHS, (uint32_t)number, 0, paths,
                                 sizeof *paths, count + HIDDEN_PATHS);
        }
        from += count;
        free(paths);
    }
    return 0;
}
