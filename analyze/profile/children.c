/* SPDX-License-Identifier: MIT */
/*
 * children.c: the forked children of a profile that stayed light: their records and call paths,
 * checked. See model.h and struct memtrace_process.
 *
 * A child names its contexts by ids of its own: one that is also of the file's tree stands for that
 * one, every other extends a context that was named before it. Those become nodes behind the
 * tree's, the same path of several children one node.
 */
#define XXH_INLINE_ALL
#include "analyze/base/numbermap.h"

#include "analyze/base/array.h"
#include "analyze/profile/load.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { NODES_MOST = 1 << 28 };

struct model_children model_sum_children(const struct model *model) {
    struct model_children sum = {0};
    for (size_t i = 0; i < model->child_count; i++) {
        const struct model_child *child = &model->children[i];
        uint64_t live = child->total_bytes - child->freed_bytes;
        sum.allocations = model_add(sum.allocations, child->allocations);
        sum.total_bytes = model_add(sum.total_bytes, child->total_bytes);
        sum.live_bytes = model_add(sum.live_bytes, live);
        sum.lost = model_add(sum.lost, child->lost);
        sum.maximum_bytes =
            child->maximum_bytes > sum.maximum_bytes ? child->maximum_bytes : sum.maximum_bytes;
    }
    return sum;
}

struct loading {
    struct model *model;
    const struct profile *profile;
    size_t tree_nodes; /* of the file */
    size_t node_room;
    size_t path_room;
    struct numbermap made; /* hash of parent and frame -> the node behind the tree's */
};

/* ---- Records ---- */

/* Of a child that may be running: each number is read once. */
static struct memtrace_process_own own_of(const struct memtrace_process *record) {
    struct memtrace_process now = {
        .counts = {.alloc_count = profile_load_u64(&record->counts.alloc_count),
                   .alloc_bytes = profile_load_u64(&record->counts.alloc_bytes),
                   .free_count = profile_load_u64(&record->counts.free_count),
                   .free_bytes = profile_load_u64(&record->counts.free_bytes)},
        .maximum_bytes = profile_load_u64(&record->maximum_bytes),
        .inherited_free_count = profile_load_u64(&record->inherited_free_count),
        .inherited_free_bytes = profile_load_u64(&record->inherited_free_bytes)};
    return memtrace_process_own(&now);
}

static void take_child(struct model *model, const struct memtrace_process *record, size_t number) {
    struct model_child *child = &model->children[model->child_count++];
    uint32_t state = profile_load_u32(&record->state);
    struct memtrace_process_own own = own_of(record);
    *child = (struct model_child){
        .pid = record->pid,
        .parent_pid = record->parent_pid,
        .ended = state == MEMTRACE_PROCESS_ENDED || state == MEMTRACE_PROCESS_EXECED,
        .execed = state == MEMTRACE_PROCESS_EXECED,
        .start_ns = record->start_ns,
        .end_ns = record->end_ns,
        .frees = own.counts.free_count,
        .freed_bytes = own.counts.free_bytes,
        .allocations = own.counts.alloc_count,
        .total_bytes = own.counts.alloc_bytes,
        .maximum_bytes = own.maximum_bytes,
        .lost = profile_load_u64(&record->lost),
        .first_path = number, /* until the paths are there */
        .path_count = profile_load_u32(&record->path_count),
    };
    child->frees = child->frees < child->allocations ? child->frees : child->allocations;
    child->freed_bytes =
        child->freed_bytes < child->total_bytes ? child->freed_bytes : child->total_bytes;
    memcpy(child->name, record->name, sizeof record->name);
}

static void load_children(struct model *model, const struct profile *profile) {
    model->children =
        job_array(profile_places(profile, MEMTRACE_SEGMENT_PROCESSES), sizeof *model->children);
    for (struct profile_items at = {.kind = MEMTRACE_SEGMENT_PROCESSES};
         profile_next(profile, &at) != NULL;) {
        const struct memtrace_process *record = at.item;
        uint32_t state = profile_load_u32(&record->state);
        bool is_light = state != MEMTRACE_PROCESS_FREE && state != MEMTRACE_PROCESS_GROWN;
        if (is_light && at.place != 0) {
            take_child(model, record, at.number);
        }
    }
}

/* In a damaged file several may have one number, which would share paths: the first one counts. */
static void drop_doubles(struct model *model) {
    size_t kept = 0;
    array_sort_by(model->children, model->child_count, sizeof *model->children,
                  offsetof(struct model_child, first_path));
    for (size_t i = 0; i < model->child_count; i++) {
        if (kept == 0 || model->children[kept - 1].first_path != model->children[i].first_path) {
            model->children[kept++] = model->children[i];
        }
    }
    model->child_count = kept;
}

/* ---- Paths ---- */

/* The node of a path that a child made. */
static uint32_t child_node(struct loading *loading, uint32_t parent, uint64_t frame) {
    struct model *model = loading->model;
    uint64_t key[2] = {parent, frame};
    uint64_t hash = XXH3_64bits(key, sizeof key);
    uintptr_t known;
    while ((known = (uintptr_t)numbermap_get(&loading->made, hash)) != 0) {
        if (model->nodes[known].parent == parent && model->nodes[known].frame == frame) {
            return (uint32_t)known;
        }
        hash++;
    }
    if (model->node_count >= NODES_MOST) {
        job_fail_memory();
    }
    job_grow(&model->nodes, &loading->node_room, model->node_count, sizeof *model->nodes);
    numbermap_set(&loading->made, hash, (void *)model->node_count);
    model->nodes[model->node_count] = (struct model_node){.frame = frame, .parent = parent};
    return (uint32_t)model->node_count++;
}

static void add_child_path(struct loading *loading, struct model_child_path path) {
    struct model *model = loading->model;
    job_grow(&model->child_paths, &loading->path_room, model->child_path_count, sizeof path);
    model->child_paths[model->child_path_count++] = path;
}

/* A context that a child names: one it made, else one of the tree. 0: there is no such. */
static uint32_t named(const struct loading *loading, const struct numbermap *own, uint32_t id) {
    uint32_t node = (uint32_t)(uintptr_t)numbermap_get(own, id);
    return node != 0 ? node : id < loading->tree_nodes ? id : 0;
}

/* One item. Where it names what nobody knows, its sums are kept without that path. */
static void take_path(struct loading *loading, struct numbermap *own,
                      const struct memtrace_path *path) {
    uint32_t node;
    if (path->frame != 0) {
        node = child_node(loading, named(loading, own, path->parent), path->frame);
        numbermap_set(own, path->id, (void *)(uintptr_t)node);
    } else if (path->id < loading->tree_nodes && loading->model->nodes[path->id].frame != 0) {
        node = path->id;
    } else if (path->alloc_count != 0) {
        node = child_node(loading, 0, MEMTRACE_FRAME_UNKNOWN);
    } else {
        return; /* a place that was not used */
    }
    add_child_path(
        loading,
        (struct model_child_path){
            .node = node,
            .total_bytes = path->alloc_bytes,
            .allocations = path->alloc_count,
            .freed_bytes =
                path->free_bytes < path->alloc_bytes ? path->free_bytes : path->alloc_bytes,
            .frees = path->free_count < path->alloc_count ? path->free_count : path->alloc_count,
        });
}

static void subtract(uint64_t *from, uint64_t number) {
    *from -= number < *from ? number : *from;
}

/* One that was killed wrote no paths, or not all: the rest of its heap has none. In a profile
 * without contexts all of it, and there is nothing to add it to. */
static void add_remainder(struct loading *loading, const struct model_child *child) {
    const struct model *model = loading->model;
    struct model_child_path rest = {.total_bytes = child->total_bytes,
                                    .allocations = child->allocations,
                                    .freed_bytes = child->freed_bytes,
                                    .frees = child->frees};
    for (size_t i = child->first_path; i < model->child_path_count; i++) {
        const struct model_child_path *path = &model->child_paths[i];
        if (contexts_class(model->nodes[path->node].frame) == MODEL_HEAP) {
            subtract(&rest.total_bytes, path->total_bytes);
            subtract(&rest.allocations, path->allocations);
            subtract(&rest.freed_bytes, path->freed_bytes);
            subtract(&rest.frees, path->frees);
        }
    }
    if (rest.allocations == 0 || model->header.stacks == MEMTRACE_STACKS_NONE) {
        return;
    }
    rest.frees = rest.frees < rest.allocations ? rest.frees : rest.allocations;
    rest.freed_bytes = rest.freed_bytes < rest.total_bytes ? rest.freed_bytes : rest.total_bytes;
    rest.node = child_node(loading, 0, MEMTRACE_FRAME_UNKNOWN);
    add_child_path(loading, rest);
}

enum { UNDER_HEADER = 2 }; /* items of a segment of paths that lie under its header */

/* Items of one segment that are one child's. */
struct span {
    const struct profile_segment *segment;
    uint32_t owner;
    uint32_t first, end;
};

struct spans {
    struct span *item;
    size_t count, room;
};

static void add_span(struct spans *spans, struct span span) {
    job_grow(&spans->item, &spans->room, spans->count, sizeof span);
    spans->item[spans->count++] = span;
}

/* What follows each head; what none counts is void. */
static void split_shared(struct spans *spans, const struct profile *profile,
                         const struct profile_segment *segment) {
    for (uint32_t place = UNDER_HEADER; place < segment->item_count; place++) {
        const struct memtrace_path *head = profile_item(profile, segment, place);
        uint32_t left = segment->item_count - place - 1;
        struct span span = {.segment = segment, .first = place + 1};
        if (head == NULL || profile_load_u64(&head->frame) != MEMTRACE_PATHS_HEAD) {
            continue;
        }
        span.owner = profile_load_u32(&head->id);
        span.end = span.first + (head->parent < left ? head->parent : left);
        if (span.owner != 0) {
            add_span(spans, span);
            place = span.end - 1;
        }
    }
}

static void find_spans(struct spans *spans, const struct profile *profile) {
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        if (segment->kind != MEMTRACE_SEGMENT_PATHS) {
            continue;
        }
        if (segment->owner == 0) {
            split_shared(spans, profile, segment);
        } else {
            add_span(spans, (struct span){.segment = segment,
                                          .owner = segment->owner,
                                          .first = UNDER_HEADER,
                                          .end = segment->item_count});
        }
    }
}

/* The items of a child's spans, in their order; at most as many as it said. */
static void load_paths(struct loading *loading, struct model_child *child, const struct span *spans,
                       size_t count) {
    struct numbermap own = {0};
    size_t wanted = child->path_count;
    size_t taken = 0;
    child->first_path = loading->model->child_path_count;
    for (size_t i = 0; i < count; i++) {
        for (uint32_t place = spans[i].first; taken < wanted && place < spans[i].end; place++) {
            const struct memtrace_path *path =
                profile_item(loading->profile, spans[i].segment, place);
            if (path != NULL) {
                take_path(loading, &own, path);
                taken++;
            }
        }
    }
    add_remainder(loading, child);
    child->path_count = loading->model->child_path_count - child->first_path;
    job_release(own.entries);
}

static int by_owner(const void *left, const void *right) {
    const struct span *a = left;
    const struct span *b = right;
    if (a->owner != b->owner) {
        return a->owner < b->owner ? -1 : 1;
    }
    if (a->segment->index != b->segment->index) {
        return a->segment->index < b->segment->index ? -1 : 1;
    }
    if (a->segment->offset != b->segment->offset) {
        return a->segment->offset < b->segment->offset ? -1 : 1;
    }
    return (a->first > b->first) - (a->first < b->first);
}

/* Children and spans are both sorted by the child's number. */
static void load_all_paths(struct loading *loading, const struct spans *spans) {
    struct model *model = loading->model;
    size_t first = 0;
    if (spans->count != 0) {
        qsort(spans->item, spans->count, sizeof *spans->item, by_owner);
    }
    for (size_t i = 0; i < model->child_count; i++) {
        struct model_child *child = &model->children[i];
        size_t end;
        while (first < spans->count && spans->item[first].owner < child->first_path) {
            first++;
        }
        for (end = first; end < spans->count && spans->item[end].owner == child->first_path;
             end++) {
        }
        load_paths(loading, child, spans->item + first, end - first);
        first = end;
    }
}

static int by_start(const void *left, const void *right) {
    const struct model_child *a = left;
    const struct model_child *b = right;
    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns ? -1 : 1;
    }
    return (a->pid > b->pid) - (a->pid < b->pid);
}

void children_load(struct model *model, const struct profile *profile) {
    struct loading loading = {.model = model,
                              .profile = profile,
                              .tree_nodes = model->node_count,
                              .node_room = model->node_count};
    struct spans spans = {0};
    load_children(model, profile);
    if (model->child_count == 0) {
        return;
    }
    drop_doubles(model);
    find_spans(&spans, profile);
    load_all_paths(&loading, &spans);
    qsort(model->children, model->child_count, sizeof *model->children, by_start);
    job_release(spans.item);
    job_release(loading.made.entries);
}
