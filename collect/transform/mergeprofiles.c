/* SPDX-License-Identifier: MIT */
/* mergeprofiles.c: one profile of several. See mergeprofiles.h. */
#include "collect/transform/mergeprofiles.h"

#include "analyze/base/array.h"
#include "analyze/read/recording.h"
#include "collect/profilewrite.h"
#include "collect/transform/mergetables.h"
#include "memtrace/sampled.h"

#include <stdlib.h>
#include <string.h>

enum {
    PEAK_EPOCH = 2,   /* even: each cell says what it held at the maximum */
    HIDDEN_PATHS = 2, /* the places of a segment of paths that lie under its header */
};

/* One file, and when its process started. */
struct input {
    const char *path;
    uint64_t start_ns;
    uint32_t pid;
};

struct merging {
    struct input *inputs; /* in the order of their starts */
    size_t count;
    model_loader *load; /* of recordings; NULL: profiles alone, children stay children */
    void *context;
    struct mergetables tables;
    struct memtrace_header header; /* of the first process, with the sums of all */
    uint64_t end_ns;
    bool is_incomplete;          /* not all of one of them could be read */
    struct memtrace_cell *cells; /* by id; cell_count of them; lifetimes: places in `lifetimes` */
    size_t cell_count;
    size_t cell_room;
    struct memtrace_estimate *estimates; /* as many */
    size_t estimate_room;
    struct memtrace_lifetimes *lifetimes;
    size_t lifetime_count;
    size_t lifetime_room;
    struct model_foreign *foreign; /* with the tables' thread ids */
    size_t foreign_count;
    size_t foreign_room;
    struct memtrace_point *changes; /* of the timeline: by how much its sums grow; modulo 2^64: or
                                       fall */
    size_t change_count;
    size_t change_room;
    struct memtrace_process *children; /* [0] lies under the segment's header */
    size_t child_count;                /* that one included; 0: there are none yet */
    size_t child_room;
    struct memtrace_path *paths; /* of all children, one after the other */
    size_t path_count;
    size_t path_room;
};

static int no_memory(struct error *error) {
    return error_set(error, "out of memory while merging");
}

/* ---- Which files ---- */

static int compare_inputs(const void *left, const void *right) {
    const struct input *a = left;
    const struct input *b = right;
    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns ? -1 : 1;
    }
    return a->pid != b->pid ? (a->pid > b->pid) - (a->pid < b->pid) : strcmp(a->path, b->path);
}

/* The head of a file. 0 or -1. */
static int look_at_file(const struct merging *merging, const char *path, struct input *input,
                        struct error *error) {
    if (merging->load != NULL && recording_is(path)) {
        struct recording *recording = recording_open(path, error);
        if (recording == NULL) {
            return -1;
        }
        *input = (struct input){path, recording->program.start_realtime_ns, recording->header.pid};
        recording_close(recording);
    } else {
        struct profile *profile = profile_open(path, error);
        if (profile == NULL) {
            return -1;
        }
        *input = (struct input){path, profile->header.start_realtime_ns, profile->header.pid};
        profile_close(profile);
    }
    return 0;
}

static int look_at(struct merging *merging, char *const *paths, size_t count, struct error *error) {
    merging->inputs = calloc(count, sizeof *merging->inputs);
    if (merging->inputs == NULL) {
        return no_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        if (look_at_file(merging, paths[i], &merging->inputs[i], error) != 0) {
            return -1;
        }
        merging->count++;
    }
    qsort(merging->inputs, count, sizeof *merging->inputs, compare_inputs);
    return 0;
}

/* ---- Costs ---- */

/* Cells for all contexts of the tables, and for 0, which is no path's: profiles may have costs and
 * no node. The new ones are zero. 0 or -1. */
static int grow_cells(struct merging *merging) {
    size_t before = merging->cell_count;
    size_t count = merging->tables.node_count != 0 ? merging->tables.node_count : 1;
    if (array_reserve(&merging->cells, &merging->cell_room, count, sizeof *merging->cells) != 0 ||
        array_reserve(&merging->estimates, &merging->estimate_room, count,
                      sizeof *merging->estimates) != 0) {
        return -1;
    }
    if (count > before) {
        memset(merging->cells + before, 0, (count - before) * sizeof *merging->cells);
        memset(merging->estimates + before, 0, (count - before) * sizeof *merging->estimates);
        merging->cell_count = count;
    }
    return 0;
}

/* The record of a cell. The first place of a leaf lies under its header. NULL: out of memory. */
static struct memtrace_lifetimes *lifetimes_of(struct merging *merging,
                                               struct memtrace_cell *cell) {
    if (cell->lifetimes == 0) {
        size_t place = merging->lifetime_count;
        if (array_reserve(&merging->lifetimes, &merging->lifetime_room, place + 2,
                          sizeof *merging->lifetimes) != 0) {
            return NULL;
        }
        memset(merging->lifetimes + place, 0, 2 * sizeof *merging->lifetimes);
        place += place % MEMTRACE_LEAF_ITEMS == 0;
        cell->lifetimes = (uint32_t)place;
        merging->lifetime_count = place + 1;
    }
    return &merging->lifetimes[cell->lifetimes];
}

static int add_lifetimes(struct merging *merging, struct memtrace_cell *cell,
                         const uint64_t *buckets) {
    struct memtrace_lifetimes *sums = lifetimes_of(merging, cell);
    if (sums == NULL) {
        return -1;
    }
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        uint64_t sum = sums->bucket[i] + buckets[i];
        sums->bucket[i] = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
    }
    return 0;
}

/* Of independent samples variances add up. */
static void add_estimate(struct memtrace_estimate *estimate, const struct model_context *context) {
    double total = context->total_error_bytes * context->total_error_bytes;
    estimate->total_variance += total;
    estimate->freed_variance += total - context->live_error_bytes * context->live_error_bytes;
    estimate->count_variance += context->allocations_error * context->allocations_error;
}

static int add_costs(struct merging *merging, const struct model *model,
                     const struct mergesource *source) {
    if (grow_cells(merging) != 0) {
        return -1;
    }
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        uint32_t id = mergesource_context(source, context->id);
        struct memtrace_cell *cell = &merging->cells[id];
        add_estimate(&merging->estimates[id], context);
        cell->alloc_bytes += context->total_bytes;
        cell->alloc_count += context->allocations;
        cell->free_bytes += context->freed_bytes;
        cell->free_count += context->frees;
        cell->temporary_count += context->temporary;
        cell->saved_live = (int64_t)((uint64_t)cell->saved_live + context->peak_bytes);
        cell->peak_epoch = PEAK_EPOCH;
        if (context->lifetimes != MODEL_NO_LIFETIMES &&
            add_lifetimes(merging, cell, &model->lifetimes[context->lifetimes]) != 0) {
            return -1;
        }
    }
    return 0;
}

/* A child that was light when its parent ended, and then got a profile of its own, in which all
 * that it did is counted: one of these, that begins where its record does, by two clocks. */
static bool has_grown(const struct merging *merging, const struct model_child *child,
                      uint64_t shift_ns) {
    const int64_t apart_ns = 1000000000;
    uint64_t start_ns = merging->inputs[0].start_ns + shift_ns + child->start_ns;
    for (size_t i = 0; !child->ended && i < merging->count; i++) {
        int64_t later_ns = (int64_t)(start_ns - merging->inputs[i].start_ns);
        if (merging->inputs[i].pid == child->pid && later_ns > -apart_ns && later_ns < apart_ns) {
            return true;
        }
    }
    return false;
}

static void fold_path(struct merging *merging, const struct model *model,
                      const struct mergesource *source, const struct model_child_path *path) {
    struct memtrace_cell *cell = &merging->cells[mergesource_context(source, path->node)];
    cell->alloc_bytes += path->total_bytes;
    cell->alloc_count += path->allocations;
    cell->free_bytes += model->live ? path->total_bytes : path->freed_bytes;
    cell->free_count += model->live ? path->allocations : path->frees;
    cell->peak_epoch = PEAK_EPOCH; /* else what is live would count as held at the maximum */
}

/* What light children did, as if their parent had done it. The maximum is the parent's alone. Paths
 * are of children that have ended: while the parent runs, what they left is no more. */
static void fold_children(struct merging *merging, const struct model *model,
                          const struct mergesource *source) {
    for (size_t i = 0; i < model->child_count; i++) {
        const struct model_child *child = &model->children[i];
        if (has_grown(merging, child, source->shift_ns)) {
            continue;
        }
        for (size_t at = 0; at < child->path_count; at++) {
            fold_path(merging, model, source, &model->child_paths[child->first_path + at]);
        }
        merging->header.lost[MEMTRACE_LOST_EVENTS] += child->lost;
    }
}

/* A child that stays one. */
static struct memtrace_process child_of(const struct model_child *child, uint64_t shift_ns) {
    struct memtrace_process record = {
        .pid = child->pid,
        .parent_pid = child->parent_pid,
        .state = child->execed  ? MEMTRACE_PROCESS_EXECED
                 : child->ended ? MEMTRACE_PROCESS_ENDED
                                : MEMTRACE_PROCESS_RUNNING,
        .path_count = (uint32_t)child->path_count,
        .start_ns = child->start_ns + shift_ns,
        .end_ns = child->end_ns != 0 ? child->end_ns + shift_ns : 0,
        .counts = {.alloc_count = child->allocations,
                   .alloc_bytes = child->total_bytes,
                   .free_count = child->frees,
                   .free_bytes = child->freed_bytes},
        .maximum_bytes = child->maximum_bytes,
        .lost = child->lost,
    };
    memcpy(record.name, child->name, sizeof record.name);
    return record;
}

/* What children made themselves is of the new profile's tree, too: all paths name contexts of it.
 */
static int keep_children(struct merging *merging, const struct model *model,
                         const struct mergesource *source) {
    if (array_reserve(&merging->children, &merging->child_room,
                      merging->child_count + model->child_count + 1,
                      sizeof *merging->children) != 0 ||
        array_reserve(&merging->paths, &merging->path_room,
                      merging->path_count + model->child_path_count, sizeof *merging->paths) != 0) {
        return -1;
    }
    if (merging->child_count == 0 && model->child_count != 0) {
        merging->children[merging->child_count++] = (struct memtrace_process){0};
    }
    for (size_t i = 0; i < model->child_count; i++) {
        const struct model_child *child = &model->children[i];
        if (has_grown(merging, child, source->shift_ns)) {
            continue;
        }
        merging->children[merging->child_count++] = child_of(child, source->shift_ns);
        for (size_t at = 0; at < child->path_count; at++) {
            const struct model_child_path *path = &model->child_paths[child->first_path + at];
            merging->paths[merging->path_count++] =
                (struct memtrace_path){.id = mergesource_context(source, path->node),
                                       .alloc_bytes = path->total_bytes,
                                       .alloc_count = path->allocations,
                                       .free_bytes = path->freed_bytes,
                                       .free_count = path->frees};
        }
    }
    return 0;
}

static int add_children(struct merging *merging, const struct model *model,
                        const struct mergesource *source) {
    if (merging->load == NULL) {
        return keep_children(merging, model, source);
    }
    fold_children(merging, model, source);
    return 0;
}

static int add_foreign(struct merging *merging, const struct model *model,
                       struct mergesource *source) {
    if (array_reserve(&merging->foreign, &merging->foreign_room,
                      merging->foreign_count + model->foreign_count,
                      sizeof *merging->foreign) != 0) {
        return -1;
    }
    for (size_t i = 0; i < model->foreign_count; i++) {
        struct model_foreign foreign = model->foreign[i];
        foreign.freer = mergesource_thread(source, &merging->tables, foreign.freer);
        foreign.owner = mergesource_thread(source, &merging->tables, foreign.owner);
        merging->foreign[merging->foreign_count++] = foreign;
    }
    return 0;
}

static struct memtrace_point difference(const struct memtrace_point *now,
                                        const struct memtrace_point *before) {
    return (struct memtrace_point){.time_ns = now->time_ns,
                                   .live_bytes = now->live_bytes - before->live_bytes,
                                   .resident_bytes = now->resident_bytes - before->resident_bytes,
                                   .alloc_count = now->alloc_count - before->alloc_count,
                                   .alloc_bytes = now->alloc_bytes - before->alloc_bytes};
}

/* What a process held at its end stays; its resident set goes. */
static int add_timeline(struct merging *merging, const struct model *model, uint64_t shift_ns) {
    struct memtrace_point before = {0};
    if (model->timeline_count == 0) {
        return 0;
    }
    if (array_reserve(&merging->changes, &merging->change_room,
                      merging->change_count + model->timeline_count + 1,
                      sizeof *merging->changes) != 0) {
        return -1;
    }
    for (size_t i = 0; i < model->timeline_count; i++) {
        struct memtrace_point point = model->timeline[i];
        point.time_ns += shift_ns;
        merging->changes[merging->change_count++] = difference(&point, &before);
        before = point;
    }
    merging->changes[merging->change_count++] = (struct memtrace_point){
        .time_ns = before.time_ns + 1, .resident_bytes = -before.resident_bytes};
    return 0;
}

/* The first process's header, with the sums of all. */
static void add_header(struct merging *merging, const struct model *model, uint64_t shift_ns) {
    struct memtrace_header *header = &merging->header;
    const struct memtrace_header *other = &model->header;
    uint64_t end_ns = model->now_ns + shift_ns;
    uint32_t merged = header->merged + (other->merged != 0 ? other->merged : 1);
    merging->end_ns = end_ns > merging->end_ns ? end_ns : merging->end_ns;
    merging->is_incomplete |= model->damage[0] != '\0' || model_is_unfinished(model);
    if (header->pid == 0) {
        *header = *other;
        header->merged = merged;
        header->inherited_blocks = header->inherited_bytes = 0;
        header->peak_resident_bytes = header->own_resident_bytes = header->maximum_ns =
            0; /* not known of all */
        return;
    }
    header->flags |= other->flags & (MEMTRACE_FLAG_INSTRUMENTED | MEMTRACE_FLAG_PRELOADED |
                                     MEMTRACE_FLAG_THREADED | MEMTRACE_FLAG_FOREIGN_MALLOC |
                                     MEMTRACE_FLAG_SAMPLED);
    header->live_variance += other->live_variance;
    header->maximum_variance += other->maximum_variance;
    if (other->sample_bytes > header->sample_bytes) {
        header->sample_bytes = other->sample_bytes;
    }
    if (header->malloc_by.place == MEMTRACE_MALLOC_COUNTED &&
        other->malloc_by.place != MEMTRACE_MALLOC_COUNTED) {
        header->malloc_by = other->malloc_by;
    }
    header->merged = merged;
    header->stacks = other->stacks < header->stacks ? other->stacks : header->stacks;
    header->live_bytes = (int64_t)((uint64_t)header->live_bytes + (uint64_t)other->live_bytes);
    header->maximum_bytes =
        (int64_t)((uint64_t)header->maximum_bytes + (uint64_t)other->maximum_bytes);
    header->peak_error_bytes += other->peak_error_bytes;
    header->churn_bytes += other->churn_bytes;
    for (unsigned kind = 0; kind < MEMTRACE_LOSS_KINDS; kind++) {
        *memtrace_lost(header, kind) += *memtrace_lost(other, kind);
    }
}

static int add_model(struct merging *merging, const struct model *model, uint64_t shift_ns,
                     struct error *error) {
    struct mergesource source;
    int result = mergetables_add(&merging->tables, model, shift_ns, &source, error);
    if (result == 0 &&
        (add_costs(merging, model, &source) != 0 || add_foreign(merging, model, &source) != 0 ||
         add_timeline(merging, model, shift_ns) != 0)) {
        result = no_memory(error);
    }
    add_header(merging, model, shift_ns);
    if (result == 0 && add_children(merging, model, &source) != 0) {
        result = no_memory(error);
    }
    mergesource_free(&source);
    return result;
}

static struct model *load_input(const struct merging *merging, const struct input *input,
                                struct error *error) {
    struct profile *profile;
    struct model *model;
    if (merging->load != NULL && recording_is(input->path)) {
        return merging->load(merging->context, input->path, error);
    }
    profile = profile_open(input->path, error);
    model = profile != NULL ? model_load(profile, error) : NULL;
    profile_close(profile);
    return model;
}

static int add_input(struct merging *merging, const struct input *input, struct error *error) {
    struct model *model = load_input(merging, input, error);
    int result = -1;
    if (model != NULL) {
        result = add_model(merging, model, input->start_ns - merging->inputs[0].start_ns, error);
    }
    model_free(model);
    return result;
}

/* ---- Writing ---- */

static void write_tree(struct profilewrite *write, const struct mergetables *tables) {
    struct memtrace_node leaf[MEMTRACE_LEAF_ITEMS];
    for (size_t first = 0; first < tables->node_count; first += MEMTRACE_LEAF_ITEMS) {
        memset(leaf, 0, sizeof leaf);
        for (size_t i = 0; i < MEMTRACE_LEAF_ITEMS && first + i < tables->node_count; i++) {
            const struct memtrace_recording_node *node = &tables->nodes[first + i];
            leaf[i] = (struct memtrace_node){.frame = node->frame, .parent = node->parent};
        }
        profilewrite_segment(write, MEMTRACE_SEGMENT_TREE, 0,
                             (uint32_t)(first / MEMTRACE_LEAF_ITEMS), leaf, sizeof *leaf,
                             MEMTRACE_LEAF_ITEMS);
    }
}

/* One leaf that holds all ids. */
static int write_threads(struct profilewrite *write, const struct mergetables *tables) {
    struct memtrace_thread_record *threads = calloc(MERGETABLES_THREADS, sizeof *threads);
    size_t count = 0;
    if (threads == NULL) {
        return -1;
    }
    for (size_t i = 0; i < tables->thread_count; i++) {
        uint32_t id = tables->threads[i].id;
        threads[id] = tables->threads[i];
        count = id >= count ? id + 1 : count;
    }
    profilewrite_segment(write, MEMTRACE_SEGMENT_THREADS, 0, 0, threads, sizeof *threads, count);
    free(threads);
    return 0;
}

static int write_pools(struct profilewrite *write, const struct mergetables *tables) {
    struct memtrace_pool *pools = calloc(tables->pool_count + 1, sizeof *pools);
    if (pools == NULL) {
        return -1;
    }
    for (size_t i = 0; i < tables->pool_count; i++) {
        memcpy(pools[i].name, tables->pools[i].name, sizeof pools[i].name);
    }
    profilewrite_segment(write, MEMTRACE_SEGMENT_POOLS, 0, 0, pools, sizeof *pools,
                         tables->pool_count);
    free(pools);
    return 0;
}

enum { OWNERS = 256, HIDDEN_OWNERS = 4, OWNER_PLACES = OWNERS + HIDDEN_OWNERS };

static int compare_foreign(const void *left, const void *right) {
    const struct model_foreign *a = left;
    const struct model_foreign *b = right;
    return a->freer != b->freer ? (a->freer > b->freer) - (a->freer < b->freer)
                                : (a->owner > b->owner) - (a->owner < b->owner);
}

/* Whose memory a thread freed, 256 owners a leaf. */
static void write_foreign(struct profilewrite *write, struct merging *merging) {
    size_t next;
    if (merging->foreign_count != 0) {
        qsort(merging->foreign, merging->foreign_count, sizeof *merging->foreign, compare_foreign);
    }
    for (size_t i = 0; i < merging->foreign_count; i = next) {
        const struct model_foreign *first = &merging->foreign[i];
        struct memtrace_foreign_frees frees[OWNER_PLACES] = {{0}};
        for (next = i;
             next < merging->foreign_count && merging->foreign[next].freer == first->freer &&
             merging->foreign[next].owner / OWNERS == first->owner / OWNERS;
             next++) {
            uint32_t place = merging->foreign[next].owner % OWNERS;
            place += place < HIDDEN_OWNERS ? OWNERS : 0;
            frees[place] = (struct memtrace_foreign_frees){merging->foreign[next].blocks,
                                                           merging->foreign[next].bytes};
        }
        profilewrite_segment(write, MEMTRACE_SEGMENT_FREES, first->freer, first->owner / OWNERS,
                             frees, sizeof frees[0], OWNER_PLACES);
    }
}

static int compare_points(const void *left, const void *right) {
    const struct memtrace_point *a = left;
    const struct memtrace_point *b = right;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Changes become sums, one for each moment. */
static void sum_up(struct merging *merging) {
    struct memtrace_point sum = {0};
    size_t count = 0;
    for (size_t i = 0; i < merging->change_count; i++) {
        const struct memtrace_point *change = &merging->changes[i];
        count += i != 0 && change->time_ns != sum.time_ns;
        sum.time_ns = change->time_ns;
        sum.live_bytes += change->live_bytes;
        sum.resident_bytes += change->resident_bytes;
        sum.alloc_count += change->alloc_count;
        sum.alloc_bytes += change->alloc_bytes;
        merging->changes[count] = sum;
    }
    merging->change_count = count + 1;
}

/* Of the points [from, to) that with the most live bytes, so that peaks stay. */
static const struct memtrace_point *highest(const struct merging *merging, size_t from, size_t to) {
    const struct memtrace_point *best = &merging->changes[from];
    for (size_t i = from; i < to && i < merging->change_count; i++) {
        best = merging->changes[i].live_bytes > best->live_bytes ? &merging->changes[i] : best;
    }
    return best;
}

/* The sums at as many moments as there is room for, the last one included. 0 or -1. */
static int write_timeline(struct profilewrite *write, struct merging *merging) {
    struct memtrace_timeline *timeline = calloc(1, sizeof *timeline);
    if (timeline == NULL) {
        return -1;
    }
    if (merging->change_count != 0) {
        size_t stride;
        qsort(merging->changes, merging->change_count, sizeof *merging->changes, compare_points);
        sum_up(merging);
        stride = (merging->change_count + MEMTRACE_TIMELINE_POINTS - 1) / MEMTRACE_TIMELINE_POINTS;
        for (size_t i = 0; i < merging->change_count; i += stride) {
            timeline->point[timeline->count++] = *highest(merging, i, i + stride);
        }
    }
    profilewrite_segment(write, MEMTRACE_SEGMENT_TIMELINE, 0, 0, timeline, sizeof *timeline, 1);
    free(timeline);
    return 0;
}

/* 0 or -1. */
static int write_children(struct profilewrite *write, const struct merging *merging) {
    const struct memtrace_path *from = merging->paths;
    profilewrite_segment(write, MEMTRACE_SEGMENT_PROCESSES, 0, 0, merging->children,
                         sizeof *merging->children, merging->child_count);
    for (size_t number = 1; number < merging->child_count; number++) {
        size_t count = merging->children[number].path_count;
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

static void finish_header(struct merging *merging) {
    struct memtrace_header *header = &merging->header;
    header->state = MEMTRACE_STATE_ENDED;
    header->flags |= merging->is_incomplete ? (uint32_t)MEMTRACE_FLAG_INCOMPLETE : 0;
    header->collector_pid = 0;
    header->peak_epoch = PEAK_EPOCH;
    header->clock_ns = merging->end_ns;
    header->end_monotonic_ns = header->start_monotonic_ns + merging->end_ns;
    mergetables_count(&merging->tables, header);
}

static int write_out(struct merging *merging, FILE *out, struct error *error) {
    const struct mergetables *tables = &merging->tables;
    struct profilewrite write = profilewrite_begin();
    profilewrite_segment(&write, MEMTRACE_SEGMENT_MODULES, 0, 0, tables->modules,
                         sizeof *tables->modules, tables->module_count);
    write_tree(&write, tables);
    if ((merging->header.flags & MEMTRACE_FLAG_SAMPLED) != 0) {
        profilewrite_leaves(&write, MEMTRACE_SEGMENT_ESTIMATES, 0, merging->estimates,
                            sizeof *merging->estimates, merging->cell_count);
    }
    profilewrite_leaves(&write, MEMTRACE_SEGMENT_LEDGER, 1, merging->cells, sizeof *merging->cells,
                        merging->cell_count);
    profilewrite_leaves(&write, MEMTRACE_SEGMENT_LIFETIMES, 0, merging->lifetimes,
                        sizeof *merging->lifetimes, merging->lifetime_count);
    if (write_threads(&write, tables) != 0 || write_pools(&write, tables) != 0 ||
        write_timeline(&write, merging) != 0 || write_children(&write, merging) != 0) {
        profilewrite_drop(&write);
        return no_memory(error);
    }
    write_foreign(&write, merging);
    finish_header(merging);
    return profilewrite_end(&write, &merging->header, out, error);
}

int merge_profiles(char *const *paths, size_t count, model_loader *load, void *context, FILE *out,
                   struct error *error) {
    struct merging merging = {.load = load, .context = context};
    int result = look_at(&merging, paths, count, error);
    for (size_t i = 0; result == 0 && i < merging.count; i++) {
        result = add_input(&merging, &merging.inputs[i], error);
    }
    if (result == 0) {
        result = write_out(&merging, out, error);
    }
    mergetables_free(&merging.tables);
    free(merging.inputs);
    free(merging.cells);
    free(merging.estimates);
    free(merging.lifetimes);
    free(merging.foreign);
    free(merging.changes);
    free(merging.children);
    free(merging.paths);
    return result;
}
