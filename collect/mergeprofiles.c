/* SPDX-License-Identifier: MIT */
/* mergeprofiles.c: one profile of several, and how a profile is written. See mergeprofiles.h. */
#include "collect/mergeprofiles.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/read/block.h"
#include "analyze/read/recording.h"
#include "collect/compress.h"
#include "collect/mergetables.h"
#include "memtrace/sampled.h"

#include <errno.h>
#include <string.h>

/* ---- A profile ---- */

/* Room for this many bytes more, all zero. */
static unsigned char *profilewrite_append(struct profilewrite *write, size_t size) {
    size_t at = write->size;
    job_reserve(&write->bytes, &write->room, at + size, sizeof *write->bytes);
    memset(write->bytes + at, 0, size);
    write->size += size;
    return write->bytes + at;
}

struct profilewrite profilewrite_begin(void) {
    struct profilewrite write = {.size = 0};
    profilewrite_append(&write, MEMTRACE_HEADER_SIZE);
    return write;
}

/* A segment of item_count items, of which the first `given` are there and the others are zero. */
static void profilewrite_put(struct profilewrite *write, struct memtrace_segment segment,
                             const void *items, size_t given) {
    const uint64_t page = MEMTRACE_PAGE_SIZE;
    uint64_t bytes = (uint64_t)segment.item_size * given;
    unsigned char *place;
    segment.magic = MEMTRACE_SEGMENT_MAGIC;
    segment.header_size = sizeof segment;
    segment.size = ((uint64_t)segment.item_size * segment.item_count + page - 1) / page * page;
    place = profilewrite_append(write, segment.size);
    memcpy(place, &segment, sizeof segment);
    if (bytes > sizeof segment) {
        memcpy(place + sizeof segment, (const char *)items + sizeof segment,
               bytes - sizeof segment);
    }
}

void profilewrite_segment(struct profilewrite *write, enum memtrace_segment_kind kind,
                          uint32_t owner, uint32_t index, const void *items, size_t item_size,
                          size_t item_count) {
    const struct memtrace_segment segment = {.kind = (uint16_t)kind,
                                             .owner = owner,
                                             .index = index,
                                             .item_size = (uint32_t)item_size,
                                             .item_count = (uint32_t)item_count};
    if (item_size * item_count > sizeof segment) {
        profilewrite_put(write, segment, items, item_count);
    }
}

void profilewrite_leaves(struct profilewrite *write, enum memtrace_segment_kind kind,
                         uint32_t owner, const void *items, size_t item_size, size_t item_count) {
    for (size_t first = 0; first < item_count; first += MEMTRACE_LEAF_ITEMS) {
        size_t left = item_count - first;
        const struct memtrace_segment segment = {.kind = (uint16_t)kind,
                                                 .owner = owner,
                                                 .index = (uint32_t)(first / MEMTRACE_LEAF_ITEMS),
                                                 .item_size = (uint32_t)item_size,
                                                 .item_count = MEMTRACE_LEAF_ITEMS};
        profilewrite_put(write, segment, (const char *)items + first * item_size,
                         left < MEMTRACE_LEAF_ITEMS ? left : MEMTRACE_LEAF_ITEMS);
    }
}

void profilewrite_end(struct profilewrite *write, struct memtrace_header *header, FILE *out) {
    const struct compress_source source = {write->bytes, -1, write->size};
    memcpy(header->magic, MEMTRACE_MAGIC, sizeof header->magic);
    header->version = (header->flags & MEMTRACE_FLAG_SAMPLED) != 0 ? MEMTRACE_FORMAT_SAMPLED
                                                                   : MEMTRACE_FORMAT_VERSION;
    header->header_size = MEMTRACE_HEADER_SIZE;
    header->byte_order = MEMTRACE_BYTE_ORDER;
    header->end = write->size;
    memcpy(write->bytes, header, sizeof *header);
    if (compress_or_store(&source, BLOCK_PACK_LEVEL, fileno(out)) != 0) {
        job_fail("cannot write the profile: %s", strerror(errno));
    }
}

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
    char *const *paths;
    struct input *inputs; /* in the order of their starts */
    size_t count;
    model_loader *load; /* of recordings; NULL: profiles alone, children stay children */
    void *context;
    FILE *out;
    struct model *model; /* of the file that is being added */
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
    struct memtrace_path *paths_of_children; /* one child's after the other's */
    size_t path_count;
    size_t path_room;
};

/* ---- Which files ---- */

static int input_compare(const void *left, const void *right) {
    const struct input *a = left;
    const struct input *b = right;
    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns ? -1 : 1;
    }
    return a->pid != b->pid ? (a->pid > b->pid) - (a->pid < b->pid) : strcmp(a->path, b->path);
}

/* Looks at the heads of all files. */
static void mergeprofiles_find_inputs(struct merging *merging) {
    struct error error;
    merging->inputs = job_array(merging->count, sizeof *merging->inputs);
    for (size_t i = 0; i < merging->count; i++) {
        const char *path = merging->paths[i];
        if (merging->load != NULL && recording_is(path)) {
            struct recording *recording = recording_open(path, &error);
            job_check(recording != NULL ? 0 : -1, &error);
            merging->inputs[i] =
                (struct input){path, recording->program.start_realtime_ns, recording->header.pid};
            recording_close(recording);
        } else {
            struct profile *profile = profile_open(path, &error);
            job_check(profile != NULL ? 0 : -1, &error);
            merging->inputs[i] =
                (struct input){path, profile->header.start_realtime_ns, profile->header.pid};
            profile_close(profile);
        }
    }
    array_sort(merging->inputs, merging->count, sizeof *merging->inputs, input_compare);
}

/* ---- Costs ---- */

/* Into the record of a cell. The first place of a leaf lies under its header. */
static void mergeprofiles_add_lifetimes(struct merging *merging, struct memtrace_cell *cell,
                                        const uint64_t *buckets) {
    struct memtrace_lifetimes *sums;
    if (cell->lifetimes == 0) {
        size_t place = merging->lifetime_count;
        job_reserve(&merging->lifetimes, &merging->lifetime_room, place + 2,
                    sizeof *merging->lifetimes);
        memset(merging->lifetimes + place, 0, 2 * sizeof *merging->lifetimes);
        place += place % MEMTRACE_LEAF_ITEMS == 0;
        cell->lifetimes = (uint32_t)place;
        merging->lifetime_count = place + 1;
    }
    sums = &merging->lifetimes[cell->lifetimes];
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        uint64_t sum = sums->bucket[i] + buckets[i];
        sums->bucket[i] = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
    }
}

/* Of independent samples variances add up. */
static void mergeprofiles_add_estimate(struct memtrace_estimate *estimate,
                                       const struct model_context *context) {
    double total = context->total_error_bytes * context->total_error_bytes;
    estimate->total_variance += total;
    estimate->freed_variance += total - context->live_error_bytes * context->live_error_bytes;
    estimate->count_variance += context->allocations_error * context->allocations_error;
}

static void mergeprofiles_add_costs(struct merging *merging, const struct model *model,
                                    const struct mergesource *source) {
    size_t before = merging->cell_count;
    size_t count = merging->tables.node_count != 0 ? merging->tables.node_count : 1;
    /* Cells for all contexts of the tables, and for 0, which is no path's: profiles may have costs
     * and no node. The new ones are zero. */
    job_reserve(&merging->cells, &merging->cell_room, count, sizeof *merging->cells);
    job_reserve(&merging->estimates, &merging->estimate_room, count, sizeof *merging->estimates);
    if (count > before) {
        memset(merging->cells + before, 0, (count - before) * sizeof *merging->cells);
        memset(merging->estimates + before, 0, (count - before) * sizeof *merging->estimates);
        merging->cell_count = count;
    }
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        uint32_t id = mergesource_context(source, context->id);
        struct memtrace_cell *cell = &merging->cells[id];
        mergeprofiles_add_estimate(&merging->estimates[id], context);
        cell->alloc_bytes += context->total_bytes;
        cell->alloc_count += context->allocations;
        cell->free_bytes += context->freed_bytes;
        cell->free_count += context->frees;
        cell->temporary_count += context->temporary;
        cell->saved_live = (int64_t)((uint64_t)cell->saved_live + context->peak_bytes);
        cell->peak_epoch = PEAK_EPOCH;
        if (context->lifetimes != MODEL_NO_LIFETIMES) {
            mergeprofiles_add_lifetimes(merging, cell, &model->lifetimes[context->lifetimes]);
        }
    }
}

/* A child that was light when its parent ended, and then got a profile of its own, in which all
 * that it did is counted: one of these, that begins where its record does, by two clocks. */
static bool mergeprofiles_has_grown(const struct merging *merging, const struct model_child *child,
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

/* What a light child did, as if its parent had done it. The maximum is the parent's alone. Paths
 * are of children that have ended: while the parent runs, what they left is no more. */
static void mergeprofiles_fold_child(struct merging *merging, const struct model *model,
                                     const struct mergesource *source,
                                     const struct model_child *child) {
    for (size_t at = 0; at < child->path_count; at++) {
        const struct model_child_path *path = &model->child_paths[child->first_path + at];
        struct memtrace_cell *cell = &merging->cells[mergesource_context(source, path->node)];
        cell->alloc_bytes += path->total_bytes;
        cell->alloc_count += path->allocations;
        cell->free_bytes += model->live ? path->total_bytes : path->freed_bytes;
        cell->free_count += model->live ? path->allocations : path->frees;
        cell->peak_epoch = PEAK_EPOCH; /* else what is live would count as held at the maximum */
    }
    merging->header.lost[MEMTRACE_LOST_EVENTS] += child->lost;
}

/* A child that stays one. What it made itself is of the new profile's tree, too: all paths name
 * contexts of it. */
static void mergeprofiles_keep_child(struct merging *merging, const struct model *model,
                                     const struct mergesource *source,
                                     const struct model_child *child) {
    struct memtrace_process *record = &merging->children[merging->child_count++];
    *record = (struct memtrace_process){
        .pid = child->pid,
        .parent_pid = child->parent_pid,
        .state = child->execed  ? MEMTRACE_PROCESS_EXECED
                 : child->ended ? MEMTRACE_PROCESS_ENDED
                                : MEMTRACE_PROCESS_RUNNING,
        .path_count = (uint32_t)child->path_count,
        .start_ns = child->start_ns + source->shift_ns,
        .end_ns = child->end_ns != 0 ? child->end_ns + source->shift_ns : 0,
        .counts = {.alloc_count = child->allocations,
                   .alloc_bytes = child->total_bytes,
                   .free_count = child->frees,
                   .free_bytes = child->freed_bytes},
        .maximum_bytes = child->maximum_bytes,
        .lost = child->lost,
    };
    memcpy(record->name, child->name, sizeof record->name);
    for (size_t at = 0; at < child->path_count; at++) {
        const struct model_child_path *path = &model->child_paths[child->first_path + at];
        merging->paths_of_children[merging->path_count++] =
            (struct memtrace_path){.id = mergesource_context(source, path->node),
                                   .alloc_bytes = path->total_bytes,
                                   .alloc_count = path->allocations,
                                   .free_bytes = path->freed_bytes,
                                   .free_count = path->frees};
    }
}

static void mergeprofiles_add_children(struct merging *merging, const struct model *model,
                                       const struct mergesource *source) {
    if (merging->load == NULL) {
        job_reserve(&merging->children, &merging->child_room,
                    merging->child_count + model->child_count + 1, sizeof *merging->children);
        job_reserve(&merging->paths_of_children, &merging->path_room,
                    merging->path_count + model->child_path_count,
                    sizeof *merging->paths_of_children);
        if (merging->child_count == 0 && model->child_count != 0) {
            merging->children[merging->child_count++] = (struct memtrace_process){0};
        }
    }
    for (size_t i = 0; i < model->child_count; i++) {
        const struct model_child *child = &model->children[i];
        if (mergeprofiles_has_grown(merging, child, source->shift_ns)) {
            continue;
        }
        if (merging->load == NULL) {
            mergeprofiles_keep_child(merging, model, source, child);
        } else {
            mergeprofiles_fold_child(merging, model, source, child);
        }
    }
}

static void mergeprofiles_add_foreign(struct merging *merging, const struct model *model,
                                      struct mergesource *source) {
    job_reserve(&merging->foreign, &merging->foreign_room,
                merging->foreign_count + model->foreign_count, sizeof *merging->foreign);
    for (size_t i = 0; i < model->foreign_count; i++) {
        struct model_foreign foreign = model->foreign[i];
        foreign.freer = mergesource_thread(source, &merging->tables, foreign.freer);
        foreign.owner = mergesource_thread(source, &merging->tables, foreign.owner);
        merging->foreign[merging->foreign_count++] = foreign;
    }
}

/* What a process held at its end stays; its resident set goes. */
static void mergeprofiles_add_timeline(struct merging *merging, const struct model *model,
                                       uint64_t shift_ns) {
    struct memtrace_point before = {0};
    if (model->timeline_count == 0) {
        return;
    }
    job_reserve(&merging->changes, &merging->change_room,
                merging->change_count + model->timeline_count + 1, sizeof *merging->changes);
    for (size_t i = 0; i < model->timeline_count; i++) {
        struct memtrace_point now = model->timeline[i];
        now.time_ns += shift_ns;
        merging->changes[merging->change_count++] =
            (struct memtrace_point){.time_ns = now.time_ns,
                                    .live_bytes = now.live_bytes - before.live_bytes,
                                    .resident_bytes = now.resident_bytes - before.resident_bytes,
                                    .alloc_count = now.alloc_count - before.alloc_count,
                                    .alloc_bytes = now.alloc_bytes - before.alloc_bytes};
        before = now;
    }
    merging->changes[merging->change_count++] = (struct memtrace_point){
        .time_ns = before.time_ns + 1, .resident_bytes = -before.resident_bytes};
}

/* The first process's header, with the sums of all. */
static void mergeprofiles_add_header(struct merging *merging, const struct model *model,
                                     uint64_t shift_ns) {
    struct memtrace_header *header = &merging->header;
    const struct memtrace_header *other = &model->header;
    uint64_t end_ns = model->now_ns + shift_ns;
    uint32_t merged = header->merged + (other->merged != 0 ? other->merged : 1);
    merging->end_ns = end_ns > merging->end_ns ? end_ns : merging->end_ns;
    merging->is_incomplete |= model->damage[0] != '\0' || model_is_unfinished(model);
    if (header->pid == 0) {
        *header = *other;
        header->merged = merged;
        mergetables_begin_header(header);
        return;
    }
    mergetables_add_header(header, other);
    header->flags |= other->flags & (MEMTRACE_FLAG_INSTRUMENTED | MEMTRACE_FLAG_PRELOADED |
                                     MEMTRACE_FLAG_THREADED | MEMTRACE_FLAG_FOREIGN_MALLOC |
                                     MEMTRACE_FLAG_SAMPLED);
    header->live_variance += other->live_variance;
    header->maximum_variance += other->maximum_variance;
    if (other->sample_bytes > header->sample_bytes) {
        header->sample_bytes = other->sample_bytes;
    }
    header->merged = merged;
    header->stacks = other->stacks < header->stacks ? other->stacks : header->stacks;
    header->live_bytes = (int64_t)((uint64_t)header->live_bytes + (uint64_t)other->live_bytes);
    header->maximum_bytes =
        (int64_t)((uint64_t)header->maximum_bytes + (uint64_t)other->maximum_bytes);
    header->churn_bytes += other->churn_bytes;
}

static void mergeprofiles_add_input(struct merging *merging, const struct input *input) {
    uint64_t shift_ns = input->start_ns - merging->inputs[0].start_ns;
    struct mergesource source;
    struct error error;
    if (merging->load != NULL && recording_is(input->path)) {
        merging->model = merging->load(merging->context, input->path, &error);
    } else {
        struct profile *profile = profile_open(input->path, &error);
        merging->model = profile != NULL ? model_load(profile, &error) : NULL;
        profile_close(profile);
    }
    job_check(merging->model != NULL ? 0 : -1, &error);
    mergetables_add(&merging->tables, merging->model, shift_ns, &source);
    mergeprofiles_add_costs(merging, merging->model, &source);
    mergeprofiles_add_foreign(merging, merging->model, &source);
    mergeprofiles_add_timeline(merging, merging->model, shift_ns);
    mergeprofiles_add_header(merging, merging->model, shift_ns);
    mergeprofiles_add_children(merging, merging->model, &source);
    mergesource_release(&source);
    model_free(merging->model);
    merging->model = NULL;
}

/* ---- Writing ---- */

static void mergeprofiles_write_tree(struct profilewrite *write, const struct mergetables *tables) {
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

enum { OWNERS = 256, HIDDEN_OWNERS = 4, OWNER_PLACES = OWNERS + HIDDEN_OWNERS };

static int mergeprofiles_compare_foreign(const void *left, const void *right) {
    const struct model_foreign *a = left;
    const struct model_foreign *b = right;
    return a->freer != b->freer ? (a->freer > b->freer) - (a->freer < b->freer)
                                : (a->owner > b->owner) - (a->owner < b->owner);
}

/* Whose memory a thread freed, 256 owners a leaf. */
static void mergeprofiles_write_foreign(struct profilewrite *write, struct merging *merging) {
    size_t next;
    array_sort(merging->foreign, merging->foreign_count, sizeof *merging->foreign,
               mergeprofiles_compare_foreign);
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

static int point_compare(const void *left, const void *right) {
    const struct memtrace_point *a = left;
    const struct memtrace_point *b = right;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* Changes become sums, one for each moment. There is at least one. */
static void mergeprofiles_sum_changes(struct merging *merging) {
    struct memtrace_point sum = {0};
    size_t count = 0;
    array_sort(merging->changes, merging->change_count, sizeof *merging->changes, point_compare);
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

/* The sums at as many moments as there is room for, the last one included: of those between two the
 * one with the most live bytes, so that peaks stay. */
static void mergeprofiles_write_timeline(struct profilewrite *write, struct merging *merging) {
    struct memtrace_timeline *timeline = job_alloc(sizeof *timeline);
    size_t stride;
    if (merging->change_count != 0) {
        mergeprofiles_sum_changes(merging);
        stride = (merging->change_count + MEMTRACE_TIMELINE_POINTS - 1) / MEMTRACE_TIMELINE_POINTS;
        for (size_t i = 0; i < merging->change_count; i += stride) {
            const struct memtrace_point *best = &merging->changes[i];
            for (size_t at = i; at < i + stride && at < merging->change_count; at++) {
                const struct memtrace_point *point = &merging->changes[at];
                best = point->live_bytes > best->live_bytes ? point : best;
            }
            timeline->point[timeline->count++] = *best;
        }
    }
    profilewrite_segment(write, MEMTRACE_SEGMENT_TIMELINE, 0, 0, timeline, sizeof *timeline, 1);
}

static void mergeprofiles_write_children(struct profilewrite *write,
                                         const struct merging *merging) {
    const struct memtrace_path *from = merging->paths_of_children;
    profilewrite_segment(write, MEMTRACE_SEGMENT_PROCESSES, 0, 0, merging->children,
                         sizeof *merging->children, merging->child_count);
    for (size_t number = 1; number < merging->child_count; number++) {
        size_t count = merging->children[number].path_count;
        if (count != 0) {
            struct memtrace_path *paths = job_array(count + HIDDEN_PATHS, sizeof *paths);
            memcpy(paths + HIDDEN_PATHS, from, count * sizeof *paths);
            profilewrite_segment(write, MEMTRACE_SEGMENT_PATHS, (uint32_t)number, 0, paths,
                                 sizeof *paths, count + HIDDEN_PATHS);
            from += count;
            job_release(paths);
        }
    }
}

static void mergeprofiles_write(struct merging *merging) {
    const struct mergetables *tables = &merging->tables;
    struct memtrace_header *header = &merging->header;
    struct memtrace_thread_record *threads = job_array(MERGETABLES_THREADS, sizeof *threads);
    struct memtrace_pool *pools = job_array(tables->pool_count + 1, sizeof *pools);
    size_t thread_count = 0;
    struct profilewrite write = profilewrite_begin();
    profilewrite_segment(&write, MEMTRACE_SEGMENT_MODULES, 0, 0, tables->modules,
                         sizeof *tables->modules, tables->module_count);
    mergeprofiles_write_tree(&write, tables);
    if ((header->flags & MEMTRACE_FLAG_SAMPLED) != 0) {
        profilewrite_leaves(&write, MEMTRACE_SEGMENT_ESTIMATES, 0, merging->estimates,
                            sizeof *merging->estimates, merging->cell_count);
    }
    profilewrite_leaves(&write, MEMTRACE_SEGMENT_LEDGER, 1, merging->cells, sizeof *merging->cells,
                        merging->cell_count);
    profilewrite_leaves(&write, MEMTRACE_SEGMENT_LIFETIMES, 0, merging->lifetimes,
                        sizeof *merging->lifetimes, merging->lifetime_count);
    for (size_t i = 0; i < tables->thread_count; i++) {
        uint32_t id = tables->threads[i].id;
        threads[id] = tables->threads[i];
        thread_count = id >= thread_count ? id + 1 : thread_count;
    }
    /* One leaf that holds all ids. */
    profilewrite_segment(&write, MEMTRACE_SEGMENT_THREADS, 0, 0, threads, sizeof *threads,
                         thread_count);
    for (size_t i = 0; i < tables->pool_count; i++) {
        memcpy(pools[i].name, tables->pools[i].name, sizeof pools[i].name);
    }
    profilewrite_segment(&write, MEMTRACE_SEGMENT_POOLS, 0, 0, pools, sizeof *pools,
                         tables->pool_count);
    mergeprofiles_write_timeline(&write, merging);
    mergeprofiles_write_children(&write, merging);
    mergeprofiles_write_foreign(&write, merging);
    header->state = MEMTRACE_STATE_ENDED;
    header->flags |= merging->is_incomplete ? (uint32_t)MEMTRACE_FLAG_INCOMPLETE : 0;
    header->collector_pid = 0;
    header->peak_epoch = PEAK_EPOCH;
    header->clock_ns = merging->end_ns;
    header->end_monotonic_ns = header->start_monotonic_ns + merging->end_ns;
    mergetables_count(tables, header);
    profilewrite_end(&write, header, merging->out);
}

static void mergeprofiles_work(void *what) {
    struct merging *merging = what;
    mergeprofiles_find_inputs(merging);
    for (size_t i = 0; i < merging->count; i++) {
        mergeprofiles_add_input(merging, &merging->inputs[i]);
    }
    mergeprofiles_write(merging);
}

int merge_profiles(char *const *paths, size_t count, model_loader *load, void *context, FILE *out,
                   struct error *error) {
    struct merging merging = {
        .paths = paths, .count = count, .load = load, .context = context, .out = out};
    int result = job_run(mergeprofiles_work, &merging, NULL, error);
    model_free(merging.model);
    return result;
}
