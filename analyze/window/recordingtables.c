/* SPDX-License-Identifier: MIT */
/* recordingtables.c: the blocks of a recording that hold no events. See recordingtables.h. */
#include "analyze/window/recordingtables.h"

#include "analyze/base/array.h"
#include "analyze/replay/accounts.h"
#include "analyze/window/index.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 1 << MEMTRACE_THREAD_BITS, MODULES = MEMTRACE_FRAME_MODULE_MASK + 1 };

/* ---- Blocks of a kind ---- */

/* Goes through every whole record of a kind that can be read, in blocks whose time is in
 * [from, to); to UINT64_MAX: to the end. Start from recorded_all(). */
struct recorded {
    struct timeorder_parts parts;
    enum memtrace_block_kind kind;
    size_t size;
    uint64_t from_ns, to_ns;
    size_t part, block; /* the next one of that part */
    struct recording_buffer *buffer;
    size_t at;   /* in it: the next record */
    size_t left; /* bytes of it from there on */
};

static struct recorded recorded_all(struct timeorder_parts parts, enum memtrace_block_kind kind,
                                    size_t size) {
    return (struct recorded){.parts = parts,
                             .kind = kind,
                             .size = size,
                             .to_ns = UINT64_MAX,
                             .buffer = recording_buffer_new()};
}

/* Its place is good until the next call. NULL: that was all. */
static const void *recorded_next(struct recorded *all) {
    while (all->left < all->size && all->part < all->parts.count) {
        const struct recording *recording = all->parts.items[all->part];
        const struct memtrace_block_header *block;
        if (all->block == recording->block_count) {
            all->part++;
            all->block = 0;
            continue;
        }
        block = &recording->blocks[all->block++].block;
        if (block->kind == all->kind && block->first_ns >= all->from_ns &&
            (block->first_ns < all->to_ns || all->to_ns == UINT64_MAX) &&
            recording_take(recording, all->block - 1, all->buffer)) {
            all->at = 0;
            all->left = all->buffer->size;
        }
    }
    if (all->left < all->size) {
        job_undo_now(all->buffer);
        return NULL;
    }
    all->at += all->size;
    all->left -= all->size;
    return all->buffer->bytes + all->at - all->size;
}

/* ---- Nodes ---- */

/* Room for `count` nodes, those that are new all zero. Places without a node are not touched: ids
 * of a few nodes may be far apart. */
static void recorded_grow_nodes(struct model *model, size_t count) {
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
static void recorded_add_nodes(struct model *model, const struct recording *recording) {
    struct memtrace_node *nodes = NULL;
    size_t count = 0;
    struct error error;
    job_check(recording_nodes(recording, &nodes, &count, &error), &error);
    job_take(nodes);
    recorded_grow_nodes(model, count);
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
    recorded_grow_nodes(model, 1);
    for (size_t i = 0; i < parts.count; i++) {
        recorded_add_nodes(model, parts.items[i]);
    }
    job_reserve(&model->nodes, &none, 1, (model->node_count + 1) * sizeof *model->nodes);
    model->nodes[model->node_count++] = (struct model_node){.frame = MEMTRACE_FRAME_UNKNOWN};
}

/* ---- Modules and pools ---- */

void recorded_places(struct model *model, struct timeorder_parts parts) {
    const struct memtrace_module *module;
    const struct memtrace_recording_pool *pool;
    size_t count = 1;
    struct recorded all = recorded_all(parts, MEMTRACE_BLOCK_MODULES, sizeof *module);
    while ((module = recorded_next(&all)) != NULL) {
        if (module->id < MODULES && module->id >= count) {
            count = module->id + 1;
        }
    }
    records_reserve_modules(model, count);
    records_reserve_pools(model);
    all = recorded_all(parts, MEMTRACE_BLOCK_MODULES, sizeof *module);
    while ((module = recorded_next(&all)) != NULL) {
        if (module->id != 0 && module->id < model->module_count) {
            records_take_module(model, module, module->id);
        }
    }
    all = recorded_all(parts, MEMTRACE_BLOCK_POOLS, sizeof *pool);
    while ((pool = recorded_next(&all)) != NULL) {
        records_take_pool(model, pool->number, pool->name);
    }
    records_join_paths(model);
}

/* ---- Threads ---- */

void recorded_threads(struct model *model, struct timeorder_parts parts, const struct sums *sums) {
    struct memtrace_thread_record *records = job_array(THREADS, sizeof *records);
    struct recorded all = recorded_all(parts, MEMTRACE_BLOCK_THREADS, sizeof *records);
    const struct memtrace_thread_record *next;
    records_reserve_threads(model, THREADS);
    while ((next = recorded_next(&all)) != NULL) {
        if (next->id < THREADS) {
            records[next->id] = *next; /* the last one counts */
        }
    }
    for (uint32_t id = 0; id < THREADS; id++) {
        struct memtrace_thread_record *record = &records[id];
        /* The runtime's counters are of what happened, events of what is in the file: those are
         * shown. */
        struct sums_thread counts = sums_thread(sums, id);
        if (record->state == MEMTRACE_THREAD_FREE &&
            (counts.alloc_units | counts.free_units) == 0) {
            continue;
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
    job_release(records);
}

/* ---- Samples ---- */

struct memtrace_sample *recorded_process(struct timeorder_parts parts, size_t *count) {
    struct memtrace_sample *samples = NULL;
    struct recorded all = recorded_all(parts, MEMTRACE_BLOCK_SAMPLES, sizeof *samples);
    const struct memtrace_sample *next;
    size_t room = 0;
    *count = 0;
    while ((next = recorded_next(&all)) != NULL) {
        job_grow(&samples, &room, *count, sizeof *samples);
        samples[(*count)++] = *next;
    }
    array_sort_by(samples, *count, sizeof *samples, offsetof(struct memtrace_sample, time_ns));
    return samples;
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

void recorded_culled(const struct model *model, struct timeorder_parts parts, uint64_t from_ns,
                     uint64_t to_ns, struct slice *slice) {
    const uint32_t missing = (uint32_t)model->node_count - 1;
    struct accounts *accounts = job_array(1, sizeof *accounts);
    struct recorded all =
        recorded_all(parts, MEMTRACE_BLOCK_CULLED, sizeof(struct memtrace_culled));
    const struct memtrace_culled *next;
    all.from_ns = from_ns;
    all.to_ns = to_ns;
    accounts_start(accounts, model->nodes, model->node_count);
    while ((next = recorded_next(&all)) != NULL) {
        struct memtrace_culled culled = *next;
        culled.context = culled.context < missing && culled.context != 0 ? culled.context : missing;
        accounts_culled(accounts, &culled);
    }
    accounts_cut(accounts, slice);
    accounts_end(accounts);
    job_release(accounts);
}

/* ---- Gaps ---- */

/* What a block of that kind says. */
static struct model_gap recorded_gap(enum memtrace_block_kind kind, const void *record) {
    struct memtrace_gap lost;
    struct memtrace_thinned thinned;
    if (kind == MEMTRACE_BLOCK_GAP) {
        memcpy(&lost, record, sizeof lost);
        return (struct model_gap){.from_ns = lost.from_ns,
                                  .to_ns = lost.to_ns,
                                  .allocs = lost.allocs,
                                  .frees = lost.frees};
    }
    memcpy(&thinned, record, sizeof thinned);
    return (struct model_gap){
        .from_ns = thinned.from_ns, .to_ns = thinned.to_ns, .distance = thinned.distance};
}

/* A long one is written down in pieces. */
static size_t recorded_join_gaps(struct model_gap *gaps, size_t count) {
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
    struct recorded all = recorded_all(parts, kind, sizeof(struct memtrace_gap));
    struct model_gap *gaps = NULL;
    size_t room = 0;
    const void *record;
    MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_thinned) == sizeof(struct memtrace_gap),
                           "both are as large");
    *count = 0;
    while ((record = recorded_next(&all)) != NULL) {
        struct model_gap gap = recorded_gap(kind, record);
        if (gap.from_ns <= gap.to_ns) {
            job_grow(&gaps, &room, *count, sizeof gap);
            gaps[(*count)++] = gap;
        }
    }
    array_sort_by(gaps, *count, sizeof *gaps, offsetof(struct model_gap, from_ns));
    *count = recorded_join_gaps(gaps, *count);
    return gaps;
}

/* ---- Totals ---- */

bool recorded_totals(struct timeorder_parts parts, struct slice *totals) {
    const struct recording *last = parts.items[parts.count - 1];
    struct recording_buffer *buffer = recording_buffer_new();
    bool failed = true;
    struct varint_reader reader = {.failed = &failed};
    size_t block = last->block_count;
    /* The last one, if no events are behind it. */
    while (block != 0 && last->blocks[block - 1].block.kind != MEMTRACE_BLOCK_TOTALS &&
           last->blocks[block - 1].block.kind != MEMTRACE_BLOCK_EVENTS) {
        block--;
    }
    *totals = (struct slice){0};
    if (parts.items[0]->header.part == 0 && block != 0 &&
        last->blocks[block - 1].block.kind == MEMTRACE_BLOCK_TOTALS &&
        recording_take(last, block - 1, buffer) && buffer->size != 0) {
        failed = false;
        reader.next = buffer->bytes;
        reader.end = buffer->bytes + buffer->size;
        index_fields_slice(&(struct fields){.in = &reader}, totals);
    }
    job_undo_now(buffer);
    return !failed;
}

static void recorded_put_context(struct slice_writer *writer, const struct model *model,
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

struct recorded_packing {
    const struct model *model;
    struct varint_writer *bytes;
};

static void recorded_pack(void *what) {
    const struct recorded_packing *packing = what;
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
        recorded_put_context(&writer, model, &model->contexts[i]);
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
    index_fields_slice(&(struct fields){.out = packing->bytes}, &totals);
}

int recorded_pack_totals(const struct model *model, struct varint_writer *bytes) {
    struct recorded_packing packing = {model, bytes};
    return job_run(recorded_pack, &packing, NULL, NULL) == 0 && !bytes->failed ? 0 : -1;
}
