/* SPDX-License-Identifier: MIT */
/* mergetables.c: several processes' tables as one. See mergetables.h. */
#include "collect/mergetables.h"

#include "analyze/base/job.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum {
    FIRST_THREAD = MEMTRACE_THREAD_OTHERS + 1,
    HIDDEN_NODES = sizeof(struct memtrace_segment) / sizeof(struct memtrace_node),
};

void mergesource_release(struct mergesource *source) {
    job_release(source->contexts);
    job_release(source->modules);
    job_release(source->bases);
    job_release(source->pools);
}

/* ---- Modules ---- */

static bool mergetables_is_module(const struct memtrace_module *known,
                                  const struct model_module *module) {
    if (known->build_id_size != module->build_id_size) {
        return false;
    }
    return module->build_id_size != 0
               ? memcmp(known->build_id, module->build_id, module->build_id_size) == 0
               : strncmp(known->path, module->path, sizeof known->path - 1) == 0;
}

/* It is there from when the first process loaded it until the last one unloaded it. */
static void mergetables_widen_module(struct memtrace_module *known,
                                     const struct model_module *module, uint64_t shift_ns) {
    uint64_t load_ns = module->load_ns + shift_ns;
    uint64_t unload_ns = module->unload_ns + shift_ns;
    known->load_ns = load_ns < known->load_ns ? load_ns : known->load_ns;
    if (module->unload_ns == 0 || known->unload_ns == 0) {
        known->unload_ns = 0;
    } else if (unload_ns > known->unload_ns) {
        known->unload_ns = unload_ns;
    }
}

/* The tables' module; 0: there are too many. */
static uint32_t mergetables_module(struct mergetables *tables, const struct model_module *module,
                                   uint64_t shift_ns) {
    struct memtrace_module *added;
    for (size_t i = 1; i < tables->module_count; i++) {
        if (mergetables_is_module(&tables->modules[i], module)) {
            mergetables_widen_module(&tables->modules[i], module, shift_ns);
            return (uint32_t)i;
        }
    }
    if (tables->module_count > MEMTRACE_FRAME_MODULE_MASK) {
        return 0;
    }
    added = &tables->modules[tables->module_count];
    *added = (struct memtrace_module){
        .id = (uint32_t)tables->module_count,
        .build_id_size = module->build_id_size,
        .start = module->start,
        .end = module->end,
        .bias = module->bias,
        .load_ns = module->load_ns + shift_ns,
        .unload_ns = module->unload_ns != 0 ? module->unload_ns + shift_ns : 0};
    memcpy(added->build_id, module->build_id, sizeof added->build_id);
    snprintf(added->path, sizeof added->path, "%s", module->path);
    return (uint32_t)tables->module_count++;
}

static void mergetables_add_modules(struct mergetables *tables, const struct model *model,
                                    struct mergesource *source) {
    source->modules = job_array(model->module_count + 1, sizeof *source->modules);
    source->bases = job_array(model->module_count + 1, sizeof *source->bases);
    job_reserve(&tables->modules, &tables->module_room,
                tables->module_count + model->module_count + 1, sizeof *tables->modules);
    if (tables->module_count == 0) {
        tables->modules[tables->module_count++] = (struct memtrace_module){0};
    }
    source->module_count = model->module_count;
    for (size_t i = 1; i < model->module_count; i++) {
        const struct model_module *module = &model->modules[i];
        uint32_t id =
            module->path[0] != '\0' ? mergetables_module(tables, module, source->shift_ns) : 0;
        source->modules[i] = id;
        source->bases[i] = id != 0 ? tables->modules[id].bias - module->bias : 0;
    }
}

/* ---- Pools ---- */

static void mergetables_add_pools(struct mergetables *tables, const struct model *model,
                                  struct mergesource *source) {
    source->pools = job_array(model->pool_count + 1, sizeof *source->pools);
    job_reserve(&tables->pools, &tables->pool_room, tables->pool_count + model->pool_count,
                sizeof *tables->pools);
    source->pool_count = model->pool_count;
    for (size_t i = 0; i < model->pool_count; i++) {
        size_t at = 0;
        while (at < tables->pool_count && strcmp(tables->pools[at].name, model->pools[i]) != 0) {
            at++;
        }
        if (at == tables->pool_count) {
            tables->pools[at] = (struct memtrace_recording_pool){.number = (uint32_t)at};
            memcpy(tables->pools[at].name, model->pools[i], sizeof tables->pools[at].name);
            tables->pool_count++;
        }
        source->pools[i] = (uint32_t)at;
    }
}

/* ---- The tree ---- */

uint64_t mergesource_frame(const struct mergesource *source, uint64_t frame) {
    uint64_t module = frame >> MEMTRACE_FRAME_MODULE_SHIFT & MEMTRACE_FRAME_MODULE_MASK;
    uint64_t address = frame & MEMTRACE_FRAME_ADDRESS_MASK;
    if (frame < MEMTRACE_FRAME_CLASSES) {
        uint64_t pool = frame - MEMTRACE_FRAME_POOL;
        return frame >= MEMTRACE_FRAME_POOL && pool < source->pool_count
                   ? MEMTRACE_FRAME_POOL + source->pools[pool]
                   : frame;
    }
    if (module >= source->module_count || source->modules[module] == 0) {
        return frame & (MEMTRACE_FRAME_ADDRESS_MASK | MEMTRACE_FRAME_EXACT);
    }
    address = (address + source->bases[module]) & MEMTRACE_FRAME_ADDRESS_MASK;
    return (frame & MEMTRACE_FRAME_EXACT) | address |
           (uint64_t)source->modules[module] << MEMTRACE_FRAME_MODULE_SHIFT;
}

/* The id of the node, which is added if it is new. In a profile the first places of a leaf lie
 * under its header: no ids. */
static uint32_t mergetables_node(struct mergetables *tables, uint32_t parent, uint64_t frame) {
    uint64_t key[2] = {parent, frame};
    uint64_t hash = XXH3_64bits(key, sizeof key);
    uintptr_t known;
    while ((known = (uintptr_t)numbermap_get(&tables->children, hash)) != 0) {
        if (tables->nodes[known].parent == parent && tables->nodes[known].frame == frame) {
            return (uint32_t)known;
        }
        hash++;
    }
    job_reserve(&tables->nodes, &tables->node_room, tables->node_count + HIDDEN_NODES + 1,
                sizeof *tables->nodes);
    while (tables->node_count % MEMTRACE_LEAF_ITEMS < HIDDEN_NODES) {
        tables->nodes[tables->node_count++] = (struct memtrace_recording_node){0};
    }
    if (tables->node_count >> MEMTRACE_CONTEXT_BITS != 0) {
        job_fail("together they have more than %u contexts", 1u << MEMTRACE_CONTEXT_BITS);
    }
    numbermap_set(&tables->children, hash, (void *)tables->node_count);
    tables->nodes[tables->node_count] = (struct memtrace_recording_node){
        .frame = frame, .parent = parent, .id = (uint32_t)tables->node_count};
    return (uint32_t)tables->node_count++;
}

static void mergetables_add_nodes(struct mergetables *tables, const struct model *model,
                                  struct mergesource *source) {
    source->contexts = job_array(model->node_count + 1, sizeof *source->contexts);
    source->context_count = model->node_count;
    for (size_t i = 1; i < model->node_count; i++) {
        const struct model_node *node = &model->nodes[i];
        if (node->frame != 0) { /* else it is not there */
            source->contexts[i] = mergetables_node(tables, source->contexts[node->parent],
                                                   mergesource_frame(source, node->frame));
        }
    }
}

uint32_t mergesource_context(const struct mergesource *source, uint32_t context) {
    return context < source->context_count ? source->contexts[context] : 0;
}

/* ---- Threads ---- */

/* A process's threads past its table become one thread, as they are there: they share numbers. */
uint32_t mergesource_thread(struct mergesource *source, struct mergetables *tables,
                            uint32_t thread) {
    if (thread >= MERGETABLES_THREADS || thread == 0) {
        return 0;
    }
    if (source->threads[thread] == 0 && tables->thread_ids + FIRST_THREAD < MERGETABLES_THREADS) {
        source->threads[thread] = FIRST_THREAD + tables->thread_ids++;
    }
    return source->threads[thread];
}

static void mergetables_add_threads(struct mergetables *tables, const struct model *model,
                                    struct mergesource *source) {
    job_reserve(&tables->threads, &tables->thread_room, tables->thread_count + model->thread_count,
                sizeof *tables->threads);
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        struct memtrace_thread_record *record = &tables->threads[tables->thread_count];
        uint32_t id = mergesource_thread(source, tables, thread->id);
        if (id == 0) {
            job_fail("together they have more than %d threads", MERGETABLES_THREADS - FIRST_THREAD);
        }
        *record = (struct memtrace_thread_record){
            .id = id,
            .tid = thread->tid,
            .state = thread->alive ? MEMTRACE_THREAD_ALIVE : MEMTRACE_THREAD_ENDED,
            .start_ns = thread->start_ns + source->shift_ns,
            .end_ns = thread->end_ns != 0 ? thread->end_ns + source->shift_ns : 0,
            .counts = {.alloc_count = thread->allocations,
                       .alloc_bytes = thread->total_bytes,
                       .free_count = thread->frees,
                       .free_bytes = thread->freed_bytes},
            .foreign_free_count = thread->foreign_frees,
            .foreign_free_bytes = thread->foreign_freed_bytes};
        memcpy(record->name, thread->name, sizeof record->name);
        tables->thread_count++;
    }
}

/* ---- The whole ---- */

void mergetables_add(struct mergetables *tables, const struct model *model, uint64_t shift_ns,
                     struct mergesource *source) {
    *source = (struct mergesource){.shift_ns = shift_ns};
    mergetables_add_modules(tables, model, source);
    mergetables_add_pools(tables, model, source);
    mergetables_add_nodes(tables, model, source);
    mergetables_add_threads(tables, model, source);
}

void mergetables_begin_header(struct memtrace_header *header) {
    header->inherited_blocks = header->inherited_bytes = 0; /* they are allocations like others */
    header->peak_resident_bytes = header->own_resident_bytes = header->maximum_ns = 0;
}

void mergetables_add_header(struct memtrace_header *header, const struct memtrace_header *other) {
    if (header->malloc_by.place == MEMTRACE_MALLOC_COUNTED &&
        other->malloc_by.place != MEMTRACE_MALLOC_COUNTED) {
        header->malloc_by = other->malloc_by;
    }
    header->peak_error_bytes += other->peak_error_bytes;
    for (unsigned kind = 0; kind < MEMTRACE_LOSS_KINDS; kind++) {
        *memtrace_lost(header, kind) += *memtrace_lost(other, kind);
    }
}

void mergetables_count(const struct mergetables *tables, struct memtrace_header *header) {
    header->thread_count = tables->thread_ids + FIRST_THREAD;
    header->module_count = (uint32_t)tables->module_count;
    header->pool_count = (uint32_t)tables->pool_count;
    header->context_count = tables->node_count;
}
