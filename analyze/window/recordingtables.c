/* SPDX-License-Identifier: MIT */
/* recordingtables.c: the blocks of a recording that hold no events. See recordingtables.h. */
#include "analyze/window/recordingtables.h"

#include "analyze/base/array.h"
#include "analyze/replay/accounts.h"

#include <stdlib.h>

enum { THREADS = 1 << MEMTRACE_THREAD_BITS, MODULES = MEMTRACE_FRAME_MODULE_MASK + 1 };

/* ---- Blocks of a kind ---- */

typedef int (*record_visitor)(void *argument, const void *record);

/* Records of this kind in blocks whose time is in [from, to). */
struct wanted {
    enum memtrace_block_kind kind;
    size_t record_size;
    uint64_t from_ns;
    uint64_t to_ns; /* UINT64_MAX: to the end */
};

static bool is_wanted(const struct wanted *wanted, const struct memtrace_block_header *block) {
    return block->kind == wanted->kind && block->first_ns >= wanted->from_ns &&
           (block->first_ns < wanted->to_ns || wanted->to_ns == UINT64_MAX);
}

static int each_of_part(const struct recording *recording, const struct wanted *wanted,
                        record_visitor visit, void *argument) {
    struct recording_buffer buffer = {0};
    size_t size = wanted->record_size;
    int result = 0;
    for (size_t i = 0; result == 0 && i < recording->block_count; i++) {
        if (!is_wanted(wanted, &recording->blocks[i].block) ||
            recording_payload(recording, i, &buffer, NULL) != 0) {
            continue;
        }
        for (size_t at = 0; result == 0 && at + size <= buffer.size; at += size) {
            result = visit(argument, buffer.bytes + at);
        }
    }
    recording_buffer_free(&buffer);
    return result;
}

/* Calls visit() with every whole record that is wanted and can be read. Stops and returns what
 * visit() returns if that is not 0. */
static int each_record(struct timeorder_parts parts, struct wanted wanted, record_visitor visit,
                       void *argument) {
    int result = 0;
    for (size_t i = 0; result == 0 && i < parts.count; i++) {
        result = each_of_part(parts.items[i], &wanted, visit, argument);
    }
    return result;
}

static struct wanted all_of(enum memtrace_block_kind kind, size_t record_size) {
    return (struct wanted){kind, record_size, 0, UINT64_MAX};
}

/* ---- Nodes ---- */

/* Room for `count` nodes, those that are new all zero. Places without a node are not touched: ids
 * of a few nodes may be far apart. */
static int grow_nodes(struct model *model, size_t count) {
    struct model_node *grown;
    if (count <= model->node_count) {
        return 0;
    }
    grown = calloc(count, sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    for (size_t id = 0; id < model->node_count; id++) {
        if (model->nodes[id].frame != 0) {
            grown[id] = model->nodes[id];
        }
    }
    free(model->nodes);
    model->nodes = grown;
    model->node_count = count;
    return 0;
}

/* Each part repeats the nodes that it needs, under the same ids. */
static int add_nodes(struct model *model, const struct recording *recording) {
    struct memtrace_node *nodes = NULL;
    size_t count = 0;
    int result = recording_nodes(recording, &nodes, &count, NULL);
    if (result == 0) {
        result = grow_nodes(model, count);
    }
    for (size_t id = 1; result == 0 && id < count; id++) {
        if (nodes[id].frame == 0) {
            continue;
        }
        model->nodes[id] = (struct model_node){nodes[id].frame, nodes[id].parent};
        if (model->nodes[id].parent >= id) {
            model->nodes[id].parent = 0;
            model_damage(model, "context %zu has an impossible parent", id);
        }
        if (nodes[id].frame == MEMTRACE_FRAME_BEFORE && model->before_node == 0) {
            model->before_node = (uint32_t)id;
        }
    }
    free(nodes);
    return result;
}

int recorded_nodes(struct model *model, struct timeorder_parts parts) {
    struct model_node *grown;
    if (grow_nodes(model, 1) != 0) {
        return -1;
    }
    for (size_t i = 0; i < parts.count; i++) {
        if (add_nodes(model, parts.items[i]) != 0) {
            return -1;
        }
    }
    grown = reallocarray(model->nodes, model->node_count + 1, sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    model->nodes = grown;
    model->nodes[model->node_count++] = (struct model_node){.frame = MEMTRACE_FRAME_UNKNOWN};
    return 0;
}

/* ---- Modules and pools ---- */

static int count_module(void *argument, const void *record) {
    const struct memtrace_module *module = record;
    size_t *count = argument;
    if (module->id < MODULES && module->id >= *count) {
        *count = module->id + 1;
    }
    return 0;
}

static int take_module(void *argument, const void *record) {
    struct model *model = argument;
    const struct memtrace_module *module = record;
    if (module->id != 0 && module->id < model->module_count) {
        records_take_module(model, module, module->id);
    }
    return 0;
}

static int take_pool(void *argument, const void *record) {
    const struct memtrace_recording_pool *pool = record;
    records_take_pool(argument, pool->number, pool->name);
    return 0;
}

int recorded_places(struct model *model, struct timeorder_parts parts) {
    const size_t size = sizeof(struct memtrace_module);
    size_t count = 1;
    each_record(parts, all_of(MEMTRACE_BLOCK_MODULES, size), count_module, &count);
    if (records_reserve_modules(model, count) != 0 || records_reserve_pools(model) != 0) {
        return -1;
    }
    each_record(parts, all_of(MEMTRACE_BLOCK_MODULES, size), take_module, model);
    each_record(parts, all_of(MEMTRACE_BLOCK_POOLS, sizeof(struct memtrace_recording_pool)),
                take_pool, model);
    return records_join_paths(model);
}

/* ---- Threads ---- */

static int take_record(void *argument, const void *record) {
    struct memtrace_thread_record *threads = argument;
    const struct memtrace_thread_record *thread = record;
    if (thread->id < THREADS) {
        threads[thread->id] = *thread; /* the last one counts */
    }
    return 0;
}

/* The runtime's counters are of what happened, events of what is in the file: those are shown. */
static void take_thread(struct model *model, struct memtrace_thread_record *record, uint32_t id,
                        struct sums_thread counts) {
    bool did_something = (counts.alloc_units | counts.free_units) != 0;
    if (record->state == MEMTRACE_THREAD_FREE && !did_something) {
        return;
    }
    record->id = id;
    record->counts.alloc_count = counts.alloc_units;
    record->counts.alloc_bytes = counts.alloc_bytes;
    record->counts.free_count = counts.free_units;
    record->counts.free_bytes = counts.free_bytes;
    record->foreign_free_count = counts.foreign_units;
    record->foreign_free_bytes = counts.foreign_bytes;
    records_take_thread(model, record);
}

int recorded_threads(struct model *model, struct timeorder_parts parts, const struct sums *sums) {
    struct memtrace_thread_record *records = calloc(THREADS, sizeof *records);
    if (records == NULL || records_reserve_threads(model, THREADS) != 0) {
        free(records);
        return -1;
    }
    each_record(parts, all_of(MEMTRACE_BLOCK_THREADS, sizeof *records), take_record, records);
    for (uint32_t id = 0; id < THREADS; id++) {
        take_thread(model, &records[id], id, sums_thread(sums, id));
    }
    free(records);
    return 0;
}

/* ---- Samples ---- */

struct process_samples {
    struct memtrace_sample *items;
    size_t count, room;
};

static int take_sample(void *argument, const void *record) {
    struct process_samples *samples = argument;
    if (array_grow(&samples->items, &samples->room, samples->count, sizeof *samples->items) != 0) {
        return -1;
    }
    samples->items[samples->count++] = *(const struct memtrace_sample *)record;
    return 0;
}

static int by_time(const void *left, const void *right) {
    const struct memtrace_sample *a = left;
    const struct memtrace_sample *b = right;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

int recorded_process(struct timeorder_parts parts, struct memtrace_sample **samples,
                     size_t *count) {
    struct process_samples all = {0};
    int result = each_record(parts, all_of(MEMTRACE_BLOCK_SAMPLES, sizeof(struct memtrace_sample)),
                             take_sample, &all);
    if (all.count != 0) {
        qsort(all.items, all.count, sizeof *all.items, by_time);
    }
    *samples = all.items;
    *count = all.count;
    return result;
}

int recorded_samples(struct timeorder_parts parts, struct memtrace_point **points, size_t *count) {
    struct memtrace_sample *samples = NULL;
    int result = recorded_process(parts, &samples, count);
    *points = *count != 0 ? calloc(*count, sizeof **points) : NULL;
    if (*count != 0 && *points == NULL) {
        *count = 0;
        result = -1;
    }
    for (size_t i = 0; i < *count; i++) {
        (*points)[i] = (struct memtrace_point){
            .time_ns = samples[i].time_ns,
            .live_bytes = samples[i].live_bytes,
            .resident_bytes = samples[i].resident_bytes,
        };
    }
    free(samples);
    return result;
}

/* ---- Culled blocks ---- */

struct culling {
    struct accounts accounts;
    uint32_t missing;
};

static int take_culled(void *argument, const void *record) {
    struct culling *culling = argument;
    struct memtrace_culled culled = *(const struct memtrace_culled *)record;
    if (culled.context == 0 || culled.context >= culling->missing) {
        culled.context = culling->missing;
    }
    accounts_culled(&culling->accounts, &culled);
    return 0;
}

int recorded_culled(const struct model *model, struct timeorder_parts parts, uint64_t from_ns,
                    uint64_t to_ns, struct slice *slice) {
    struct culling *culling = calloc(1, sizeof *culling);
    int result = -1;
    *slice = (struct slice){0};
    if (culling == NULL) {
        return -1;
    }
    culling->missing = (uint32_t)model->node_count - 1;
    if (accounts_start(&culling->accounts, model->nodes, model->node_count) == 0 &&
        each_record(
            parts,
            (struct wanted){MEMTRACE_BLOCK_CULLED, sizeof(struct memtrace_culled), from_ns, to_ns},
            take_culled, culling) == 0) {
        result = accounts_cut(&culling->accounts, slice);
    }
    accounts_end(&culling->accounts);
    free(culling);
    return result;
}
