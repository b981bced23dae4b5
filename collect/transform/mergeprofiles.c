/* SPDX-License-Identifier: MIT */
/* mergeprofiles.c: one profile of several. See mergeprofiles.h. */
#include "collect/transform/mergeprofiles.h"

#include "analyze/read/recording.h"
#include "collect/profilewrite.h"
#include "collect/transform/mergechildren.h"
#include "collect/transform/mergetables.h"
#include "collect/transform/mergetimeline.h"
#include "memtrace/sampled.h"

#include <stdlib.h>
#include <string.h>

enum { PEAK_EPOCH = 2 }; /* even: each cell says what it held at the maximum */

/* One file, and when its process started. */
struct input {
    const char *path;
    uint64_t start_ns;
    uint32_t pid;
};

/* What a context of the map costs in all. */
struct merging {
    struct input *inputs; /* in the order of their starts */
    size_t count;
    struct mergetables tables;
    struct memtrace_header header; /* of the first process, with the sums of all */
    uint64_t end_ns;
    struct memtrace_cell *cells; /* by id; cell_count of them; lifetimes: places in `lifetimes` */
    size_t cell_count;
    struct memtrace_estimate *estimates; /* as many */
    struct memtrace_lifetimes *lifetimes;
    size_t lifetime_count;
    size_t lifetime_capacity;
    struct model_foreign *foreign; /* with the map's thread ids */
    size_t foreign_count;
    struct mergetimeline timeline;
    struct mergechildren children;
    const struct merge_everything *everything; /* NULL: profiles alone, children stay children */
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
    if (merging->everything != NULL && recording_is(path)) {
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

/* Cells for all contexts of the map, the new ones zero. 0 or -1. */
static int grow_cells(struct merging *merging) {
    size_t count = merging->tables.node_count;
    struct memtrace_cell *grown;
    struct memtrace_estimate *estimates;
    if (count <= merging->cell_count) {
        return 0;
    }
    grown = reallocarray(merging->cells, count, sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    memset(grown + merging->cell_count, 0, (count - merging->cell_count) * sizeof *grown);
    merging->cells = grown;
    estimates = reallocarray(merging->estimates, count, sizeof *estimates);
    if (estimates == NULL) {
        return -1;
    }
    memset(estimates + merging->cell_count, 0, (count - merging->cell_count) * sizeof *estimates);
    merging->estimates = estimates;
    merging->cell_count = count;
    return 0;
}

/* Room for one more record. 0 or -1. */
static int grow_lifetimes(struct merging *merging) {
    size_t capacity = merging->lifetime_capacity * 2 + MEMTRACE_LEAF_ITEMS;
    struct memtrace_lifetimes *grown;
    if (merging->lifetime_count < merging->lifetime_capacity) {
        return 0;
    }
    grown = reallocarray(merging->lifetimes, capacity, sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    memset(grown + merging->lifetime_capacity, 0,
           (capacity - merging->lifetime_capacity) * sizeof *grown);
    merging->lifetimes = grown;
    merging->lifetime_capacity = capacity;
    return 0;
}

/* The record of a cell. The first place of a leaf lies under its header. NULL: out of memory. */
static struct memtrace_lifetimes *lifetimes_of(struct merging *merging,
                                               struct memtrace_cell *cell) {
    if (cell->lifetimes == 0) {
        merging->lifetime_count += merging->lifetime_count % MEMTRACE_LEAF_ITEMS == 0;
        if (grow_lifetimes(merging) != 0) {
            return NULL;
        }
        cell->lifetimes = (uint32_t)merging->lifetime_count++;
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
        cell->saved_live += (int64_t)context->peak_bytes;
        cell->peak_epoch = PEAK_EPOCH;
        if (context->lifetimes != MODEL_NO_LIFETIMES &&
            add_lifetimes(merging, cell, &model->lifetimes[context->lifetimes]) != 0) {
            return -1;
        }
    }
    return 0;
}

/* What light children did, as if their parent had done it. The maximum is the parent's alone. */
static void fold_children(struct merging *merging, const struct model *model,
                          const struct mergesource *source) {
    for (size_t i = 0; i < model->child_path_count; i++) {
        const struct model_child_path *path = &model->child_paths[i];
        struct memtrace_cell *cell = &merging->cells[mergesource_context(source, path->node)];
        cell->alloc_bytes += path->total_bytes;
        cell->alloc_count += path->allocations;
        cell->free_bytes += path->freed_bytes;
        cell->free_count += path->frees;
        cell->peak_epoch = PEAK_EPOCH; /* else what is live would count as held at the maximum */
    }
    for (size_t i = 0; i < model->child_count; i++) {
        merging->header.lost[MEMTRACE_LOST_EVENTS] += model->children[i].lost;
    }
}

static int add_children(struct merging *merging, const struct model *model,
                        const struct mergesource *source) {
    if (merging->everything == NULL) {
        return mergechildren_add(&merging->children, model, source);
    }
    fold_children(merging, model, source);
    return 0;
}

static int add_foreign(struct merging *merging, const struct model *model,
                       struct mergesource *source) {
    struct model_foreign *grown = reallocarray(
        merging->foreign, merging->foreign_count + model->foreign_count + 1, sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    merging->foreign = grown;
    for (size_t i = 0; i < model->foreign_count; i++) {
        struct model_foreign foreign = model->foreign[i];
        foreign.freer = mergesource_thread(source, &merging->tables, foreign.freer);
        foreign.owner = mergesource_thread(source, &merging->tables, foreign.owner);
        grown[merging->foreign_count++] = foreign;
    }
    return 0;
}

/* The first process's header, with the sums of all. */
static void add_header(struct merging *merging, const struct model *model, uint64_t shift_ns) {
    struct memtrace_header *header = &merging->header;
    const struct memtrace_header *other = &model->header;
    uint64_t end_ns = model->now_ns + shift_ns;
    uint32_t merged = header->merged + (other->merged != 0 ? other->merged : 1);
    merging->end_ns = end_ns > merging->end_ns ? end_ns : merging->end_ns;
    if (header->pid == 0) {
        *header = *other;
        header->merged = merged;
        header->inherited_blocks = header->inherited_bytes = 0;
        header->peak_resident_bytes = header->maximum_ns = 0; /* not known of all */
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
    if (header->malloc_by.place == MEMTRACE_MALLOC_COUNTED) {
        header->malloc_by = other->malloc_by;
    }
    header->merged = merged;
    header->stacks = other->stacks < header->stacks ? other->stacks : header->stacks;
    header->live_bytes += other->live_bytes;
    header->maximum_bytes += other->maximum_bytes;
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
         mergetimeline_add(&merging->timeline, model, shift_ns) != 0)) {
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
    if (merging->everything != NULL && recording_is(input->path)) {
        return merging->everything->load(merging->everything->context, input->path, error);
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

/* The leaves of an array by id. Its last leaf is filled up with zeros. 0 or -1. */
static int write_leaves(struct profilewrite *write, enum memtrace_segment_kind kind, uint32_t owner,
                        const void *items, size_t item_size, size_t count) {
    char *leaf = calloc(MEMTRACE_LEAF_ITEMS, item_size);
    if (leaf == NULL) {
        return -1;
    }
    for (size_t first = 0; first < count; first += MEMTRACE_LEAF_ITEMS) {
        size_t left = count - first < MEMTRACE_LEAF_ITEMS ? count - first : MEMTRACE_LEAF_ITEMS;
        memset(leaf, 0, MEMTRACE_LEAF_ITEMS * item_size);
        memcpy(leaf, (const char *)items + first * item_size, left * item_size);
        profilewrite_segment(write, kind, owner, (uint32_t)(first / MEMTRACE_LEAF_ITEMS), leaf,
                             item_size, MEMTRACE_LEAF_ITEMS);
    }
    free(leaf);
    return 0;
}

static int write_tree(struct profilewrite *write, const struct mergetables *map) {
    struct memtrace_node *nodes = calloc(map->node_count + 1, sizeof *nodes);
    int result = nodes != NULL ? 0 : -1;
    for (size_t i = 1; result == 0 && i < map->node_count; i++) {
        nodes[i] =
            (struct memtrace_node){.frame = map->nodes[i].frame, .parent = map->nodes[i].parent};
    }
    if (result == 0) {
        result =
            write_leaves(write, MEMTRACE_SEGMENT_TREE, 0, nodes, sizeof *nodes, map->node_count);
    }
    free(nodes);
    return result;
}

/* One leaf that holds all ids. */
static int write_threads(struct profilewrite *write, const struct mergetables *map) {
    struct memtrace_thread_record *threads = calloc(MERGETABLES_THREADS, sizeof *threads);
    size_t count = 0;
    if (threads == NULL) {
        return -1;
    }
    for (size_t i = 0; i < map->thread_count; i++) {
        uint32_t id = map->threads[i].id;
        threads[id] = map->threads[i];
        count = id >= count ? id + 1 : count;
    }
    profilewrite_segment(write, MEMTRACE_SEGMENT_THREADS, 0, 0, threads, sizeof *threads, count);
    free(threads);
    return 0;
}

static int write_pools(struct profilewrite *write, const struct mergetables *map) {
    struct memtrace_pool *pools = calloc(map->pool_count + 1, sizeof *pools);
    if (pools == NULL) {
        return -1;
    }
    for (size_t i = 0; i < map->pool_count; i++) {
        memcpy(pools[i].name, map->pools[i].name, sizeof pools[i].name);
    }
    profilewrite_segment(write, MEMTRACE_SEGMENT_POOLS, 0, 0, pools, sizeof *pools,
                         map->pool_count);
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

static int write_timeline(struct profilewrite *write, struct merging *merging) {
    struct memtrace_timeline *timeline = calloc(1, sizeof *timeline);
    if (timeline == NULL) {
        return -1;
    }
    timeline->count =
        (uint32_t)mergetimeline_sum(&merging->timeline, timeline->point, MEMTRACE_TIMELINE_POINTS);
    profilewrite_segment(write, MEMTRACE_SEGMENT_TIMELINE, 0, 0, timeline, sizeof *timeline, 1);
    free(timeline);
    return 0;
}

static void finish_header(struct merging *merging) {
    struct memtrace_header *header = &merging->header;
    header->state = MEMTRACE_STATE_ENDED;
    header->collector_pid = 0;
    header->peak_epoch = PEAK_EPOCH;
    header->clock_ns = merging->end_ns;
    header->end_monotonic_ns = header->start_monotonic_ns + merging->end_ns;
    mergetables_count(&merging->tables, header);
}

static int write_out(struct merging *merging, FILE *out, struct error *error) {
    const struct mergetables *map = &merging->tables;
    struct profilewrite write = profilewrite_begin(out);
    profilewrite_segment(&write, MEMTRACE_SEGMENT_MODULES, 0, 0, map->modules, sizeof *map->modules,
                         map->module_count);
    if (write_tree(&write, map) != 0 ||
        ((merging->header.flags & MEMTRACE_FLAG_SAMPLED) != 0 &&
         write_leaves(&write, MEMTRACE_SEGMENT_ESTIMATES, 0, merging->estimates,
                      sizeof *merging->estimates, merging->cell_count) != 0) ||
        write_leaves(&write, MEMTRACE_SEGMENT_LEDGER, 1, merging->cells, sizeof *merging->cells,
                     merging->cell_count) != 0 ||
        write_leaves(&write, MEMTRACE_SEGMENT_LIFETIMES, 0, merging->lifetimes,
                     sizeof *merging->lifetimes, merging->lifetime_count) != 0 ||
        write_threads(&write, map) != 0 || write_pools(&write, map) != 0 ||
        write_timeline(&write, merging) != 0 ||
        mergechildren_write(&merging->children, &write) != 0) {
        return no_memory(error);
    }
    write_foreign(&write, merging);
    finish_header(merging);
    return profilewrite_end(&write, &merging->header, error);
}

static int merge_files(struct merging *merging, char *const *paths, size_t count, FILE *out,
                       struct error *error) {
    int result = look_at(merging, paths, count, error);
    for (size_t i = 0; result == 0 && i < merging->count; i++) {
        result = add_input(merging, &merging->inputs[i], error);
    }
    if (result == 0) {
        result = write_out(merging, out, error);
    }
    mergetables_free(&merging->tables);
    mergetimeline_free(&merging->timeline);
    mergechildren_free(&merging->children);
    free(merging->inputs);
    free(merging->cells);
    free(merging->estimates);
    free(merging->lifetimes);
    free(merging->foreign);
    return result;
}

int merge_profiles(char *const *paths, size_t count, FILE *out, struct error *error) {
    struct merging merging = {0};
    return merge_files(&merging, paths, count, out, error);
}

int merge_everything(char *const *paths, size_t count, const struct merge_everything *how,
                     FILE *out, struct error *error) {
    struct merging merging = {.everything = how};
    return merge_files(&merging, paths, count, out, error);
}
