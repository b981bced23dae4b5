/* SPDX-License-Identifier: MIT */
/* recordingtables.c: the blocks of a recording that hold no events. See recordingtables.h. */
#include "analyze/window/recordingtables.h"

#include "analyze/replay/accounts.h"
#include "analyze/window/index.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 1 << MEMTRACE_THREAD_BITS, MODULES = MEMTRACE_FRAME_MODULE_MASK + 1 };

/* ---- Blocks of a kind ---- */

typedef void (*record_visitor)(void *argument, const void *record);

/* Calls visit() with every whole record of this kind that can be read, in blocks whose time is in
 * [from, to); to UINT64_MAX: to the end. */
static void each_record_in(struct timeorder_parts parts, enum memtrace_block_kind kind, size_t size,
                           uint64_t from_ns, uint64_t to_ns, record_visitor visit, void *argument) {
    struct recording_buffer *buffer = recording_buffer_new();
    for (size_t part = 0; part < parts.count; part++) {
        const struct recording *recording = parts.items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            const struct memtrace_block_header *block = &recording->blocks[i].block;
            if (block->kind != kind || block->first_ns < from_ns ||
                (block->first_ns >= to_ns && to_ns != UINT64_MAX) ||
                !recording_take(recording, i, buffer)) {
                continue;
            }
            for (size_t at = 0; at + size <= buffer->size; at += size) {
                visit(argument, buffer->bytes + at);
            }
        }
    }
    job_undo_now(buffer);
}

static void each_record(struct timeorder_parts parts, enum memtrace_block_kind kind, size_t size,
                        record_visitor visit, void *argument) {
    each_record_in(parts, kind, size, 0, UINT64_MAX, visit, argument);
}

/* ---- Nodes ---- */

/* Room for `count` nodes, those that are new all zero. Places without a node are not touched: ids
 * of a few nodes may be far apart. */
static void grow_nodes(struct model *model, size_t count) {
    struct model_node *grown;
    if (count <= model->node_count) {
        return;
    }
    grown = job_array(count, sizeof *grown);
    for (size_t id = 0; id < model->node_count; id++) {
        if (model->nodes[id].frame != 0) {
            grown[id] = model->nodes[id];
        }
    }
    job_release(model->nodes);
    model->nodes = grown;
    model->node_count = count;
}

/* Each part repeats the nodes that it needs, under the same ids. */
static void add_nodes(struct model *model, const struct recording *recording) {
    struct memtrace_node *nodes = NULL;
    size_t count = 0;
    struct error error;
    job_check(recording_nodes(recording, &nodes, &count, &error), &error);
    job_take(nodes);
    grow_nodes(model, count);
    for (size_t id = 1; id < count; id++) {
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
    job_undo_now(nodes);
}

void recorded_nodes(struct model *model, struct timeorder_parts parts) {
    size_t none = 0; /* so that it is one more, not twice as many */
    grow_nodes(model, 1);
    for (size_t i = 0; i < parts.count; i++) {
        add_nodes(model, parts.items[i]);
    }
    job_reserve(&model->nodes, &none, 1, (model->node_count + 1) * sizeof *model->nodes);
    model->nodes[model->node_count++] = (struct model_node){.frame = MEMTRACE_FRAME_UNKNOWN};
}

/* ---- Modules and pools ---- */

static void count_module(void *argument, const void *record) {
    const struct memtrace_module *module = record;
    size_t *count = argument;
    if (module->id < MODULES && module->id >= *count) {
        *count = module->id + 1;
    }
}

static void take_module(void *argument, const void *record) {
    struct model *model = argument;
    const struct memtrace_module *module = record;
    if (module->id != 0 && module->id < model->module_count) {
        records_take_module(model, module, module->id);
    }
}

static void take_pool(void *argument, const void *record) {
    const struct memtrace_recording_pool *pool = record;
    records_take_pool(argument, pool->number, pool->name);
}

void recorded_places(struct model *model, struct timeorder_parts parts) {
    const size_t size = sizeof(struct memtrace_module);
    size_t count = 1;
    each_record(parts, MEMTRACE_BLOCK_MODULES, size, count_module, &count);
    records_reserve_modules(model, count);
    records_reserve_pools(model);
    each_record(parts, MEMTRACE_BLOCK_MODULES, size, take_module, model);
    each_record(parts, MEMTRACE_BLOCK_POOLS, sizeof(struct memtrace_recording_pool), take_pool,
                model);
    records_join_paths(model);
}

/* ---- Threads ---- */

static void take_record(void *argument, const void *record) {
    struct memtrace_thread_record *threads = argument;
    const struct memtrace_thread_record *thread = record;
    if (thread->id < THREADS) {
        threads[thread->id] = *thread; /* the last one counts */
    }
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

void recorded_threads(struct model *model, struct timeorder_parts parts, const struct sums *sums) {
    struct memtrace_thread_record *records = job_array(THREADS, sizeof *records);
    records_reserve_threads(model, THREADS);
    each_record(parts, MEMTRACE_BLOCK_THREADS, sizeof *records, take_record, records);
    for (uint32_t id = 0; id < THREADS; id++) {
        take_thread(model, &records[id], id, sums_thread(sums, id));
    }
    job_release(records);
}

/* ---- Samples ---- */

struct process_samples {
    struct memtrace_sample *items;
    size_t count, room;
};

static void take_sample(void *argument, const void *record) {
    struct process_samples *samples = argument;
    job_grow(&samples->items, &samples->room, samples->count, sizeof *samples->items);
    samples->items[samples->count++] = *(const struct memtrace_sample *)record;
}

static int by_sample_time(const void *left, const void *right) {
    const struct memtrace_sample *a = left;
    const struct memtrace_sample *b = right;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

struct memtrace_sample *recorded_process(struct timeorder_parts parts, size_t *count) {
    struct process_samples all = {0};
    each_record(parts, MEMTRACE_BLOCK_SAMPLES, sizeof *all.items, take_sample, &all);
    if (all.count != 0) {
        qsort(all.items, all.count, sizeof *all.items, by_sample_time);
    }
    *count = all.count;
    return all.items;
}

struct memtrace_point *recorded_samples(struct timeorder_parts parts, size_t *count) {
    struct memtrace_sample *samples = recorded_process(parts, count);
    struct memtrace_point *points = job_array(*count, sizeof *points);
    for (size_t i = 0; i < *count; i++) {
        points[i] = (struct memtrace_point){
            .time_ns = samples[i].time_ns,
            .live_bytes = samples[i].live_bytes,
            .resident_bytes = samples[i].resident_bytes,
        };
    }
    job_release(samples);
    return points;
}

/* ---- Culled blocks ---- */

struct culling {
    struct accounts accounts;
    uint32_t missing;
};

static void take_culled(void *argument, const void *record) {
    struct culling *culling = argument;
    struct memtrace_culled culled = *(const struct memtrace_culled *)record;
    if (culled.context == 0 || culled.context >= culling->missing) {
        culled.context = culling->missing;
    }
    accounts_culled(&culling->accounts, &culled);
}

void recorded_culled(const struct model *model, struct timeorder_parts parts, uint64_t from_ns,
                     uint64_t to_ns, struct slice *slice) {
    struct culling *culling = job_array(1, sizeof *culling);
    culling->missing = (uint32_t)model->node_count - 1;
    accounts_start(&culling->accounts, model->nodes, model->node_count);
    each_record_in(parts, MEMTRACE_BLOCK_CULLED, sizeof(struct memtrace_culled), from_ns, to_ns,
                   take_culled, culling);
    accounts_cut(&culling->accounts, slice);
    accounts_end(&culling->accounts);
    job_release(culling);
}

/* ---- Gaps ---- */

struct gaps {
    struct model_gap *items;
    size_t count, room;
};

static void take_gap(struct gaps *gaps, struct model_gap gap) {
    if (gap.from_ns <= gap.to_ns) {
        job_grow(&gaps->items, &gaps->room, gaps->count, sizeof gap);
        gaps->items[gaps->count++] = gap;
    }
}

static void take_lost(void *argument, const void *record) {
    struct memtrace_gap from;
    memcpy(&from, record, sizeof from);
    take_gap(argument, (struct model_gap){.from_ns = from.from_ns,
                                          .to_ns = from.to_ns,
                                          .allocs = from.allocs,
                                          .frees = from.frees});
}

static void take_thinned(void *argument, const void *record) {
    struct memtrace_thinned from;
    memcpy(&from, record, sizeof from);
    take_gap(argument, (struct model_gap){.from_ns = from.from_ns,
                                          .to_ns = from.to_ns,
                                          .distance = from.distance});
}

static int by_gap_start(const void *left, const void *right) {
    const struct model_gap *a = left;
    const struct model_gap *b = right;
    return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

/* A long one is written down in pieces. */
static size_t join_gaps(struct model_gap *gaps, size_t count) {
    size_t kept = 0;
    for (size_t i = 1; i < count; i++) {
        struct model_gap *last = &gaps[kept];
        if (gaps[i].from_ns > last->to_ns) {
            gaps[++kept] = gaps[i];
            continue;
        }
        last->to_ns = gaps[i].to_ns > last->to_ns ? gaps[i].to_ns : last->to_ns;
        last->allocs = model_add(last->allocs, gaps[i].allocs);
        last->frees = model_add(last->frees, gaps[i].frees);
        last->distance = gaps[i].distance > last->distance ? gaps[i].distance : last->distance;
    }
    return count != 0 ? kept + 1 : 0;
}

struct model_gap *recorded_gaps(struct timeorder_parts parts, enum memtrace_block_kind kind,
                                size_t *count) {
    struct gaps all = {0};
    MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_thinned) == sizeof(struct memtrace_gap),
                           "both are as large");
    each_record(parts, kind, sizeof(struct memtrace_gap),
                kind == MEMTRACE_BLOCK_GAP ? take_lost : take_thinned, &all);
    if (all.count != 0) {
        qsort(all.items, all.count, sizeof *all.items, by_gap_start);
    }
    *count = join_gaps(all.items, all.count);
    return all.items;
}

/* ---- Totals ---- */

/* The last block behind which there are no events; SIZE_MAX: there is none. */
static size_t find_totals(const struct recording *last) {
    for (size_t i = last->block_count; i-- > 0;) {
        if (last->blocks[i].block.kind == MEMTRACE_BLOCK_TOTALS) {
            return i;
        }
        if (last->blocks[i].block.kind == MEMTRACE_BLOCK_EVENTS) {
            break;
        }
    }
    return SIZE_MAX;
}

bool recorded_totals(struct timeorder_parts parts, struct slice *totals) {
    const struct recording *last = parts.items[parts.count - 1];
    struct recording_buffer *buffer;
    bool failed = false;
    struct varint_reader reader = {.failed = &failed};
    size_t block = parts.items[0]->header.part == 0 ? find_totals(last) : SIZE_MAX;
    bool is_there = false;
    *totals = (struct slice){0};
    if (block == SIZE_MAX) {
        return false;
    }
    buffer = recording_buffer_new();
    if (recording_take(last, block, buffer) && buffer->size != 0) {
        reader.next = buffer->bytes;
        reader.end = buffer->bytes + buffer->size;
        index_get_slice(&reader, totals);
        is_there = !failed;
    }
    job_undo_now(buffer);
    return is_there;
}

static void put_total_context(struct slice_writer *writer, const struct model *model,
                              const struct model_context *from) {
    struct slice_context context = {.id = from->id,
                                    .alloc_bytes = from->total_bytes,
                                    .alloc_units = from->allocations * ACCOUNTS_ONE,
                                    .free_bytes = from->freed_bytes,
                                    .free_units = from->frees * ACCOUNTS_ONE,
                                    .temporary = from->temporary * ACCOUNTS_ONE,
                                    .peak = from->peak_bytes};
    if (from->frame == MEMTRACE_FRAME_BEFORE) { /* as events tell it (accounts_before()) */
        context.alloc_bytes = from->live_bytes + from->freed_bytes;
        context.alloc_units = (1 + from->frees) * ACCOUNTS_ONE;
    }
    for (size_t i = 0; from->lifetimes != MODEL_NO_LIFETIMES && i < MEMTRACE_LIFETIME_BUCKETS;
         i++) {
        context.lifetimes[i] = model->lifetimes[from->lifetimes + i] * ACCOUNTS_ONE;
    }
    slice_put_context(writer, &context);
}

struct packing_totals {
    const struct model *model;
    struct varint_writer *bytes;
};

static void pack_totals(void *what) {
    const struct packing_totals *packing = what;
    const struct model *model = packing->model;
    struct slice totals = {.first_tick = 1,
                           .change = (int64_t)model->totals.live_bytes,
                           .highest = (int64_t)model->totals.maximum_bytes,
                           .maximum_ns = model->totals.maximum_ns,
                           .error_bytes = model->totals.maximum_error_bytes};
    struct slice_writer writer = {.slice = &totals, .bytes.of_job = true};
    struct foreign foreign = {0};
    size_t next = 0;
    for (size_t i = 0; i < model->foreign_count; i++) {
        struct model_foreign pair = model->foreign[i];
        pair.blocks *= ACCOUNTS_ONE;
        foreign_add(&foreign, pair);
    }
    foreign_sort(&foreign);
    for (size_t i = 0; i < model->context_count; i++) {
        put_total_context(&writer, model, &model->contexts[i]);
    }
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        slice_put_thread_of(&writer,
                            (struct slice_thread){.id = thread->id,
                                                  .alloc_units = thread->allocations * ACCOUNTS_ONE,
                                                  .alloc_bytes = thread->total_bytes,
                                                  .free_units = thread->frees * ACCOUNTS_ONE,
                                                  .free_bytes = thread->freed_bytes},
                            &foreign, &next);
    }
    slice_finish(&writer);
    index_put_slice(packing->bytes, &totals);
}

int recorded_pack_totals(const struct model *model, struct varint_writer *bytes) {
    struct packing_totals packing = {model, bytes};
    return job_run(pack_totals, &packing, NULL, NULL) == 0 && !bytes->failed ? 0 : -1;
}
