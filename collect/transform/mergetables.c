/* SPDX-License-Identifier: MIT */
/* mergetables.c: several processes' tables as one. See mergetables.h. */
#include "collect/transform/mergetables.h"

#include "analyze/base/array.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    FIRST_THREAD = MEMTRACE_THREAD_OTHERS + 1,
    HIDDEN_NODES = sizeof(struct memtrace_segment) / sizeof(struct memtrace_node),
};

void mergetables_free(struct mergetables *tables) {
    free(tables->modules);
    free(tables->nodes);
    free(tables->pools);
    free(tables->threads);
    numbermap_free(&tables->children);
    *tables = (struct mergetables){0};
}

void mergesource_free(struct mergesource *source) {
    free(source->contexts);
    free(source->modules);
    free(source->bases);
    free(source->pools);
    *source = (struct mergesource){0};
}

static int no_memory(struct error *error) {
    return error_set(error, "out of memory while merging");
}

/* ---- Modules ---- */

static bool is_same_module(const struct memtrace_module *known, const struct model_module *module) {
    if (known->build_id_size != module->build_id_size) {
        return false;
    }
    return module->build_id_size != 0
               ? memcmp(known->build_id, module->build_id, module->build_id_size) == 0
               : strncmp(known->path, module->path, sizeof known->path - 1) == 0;
}

static void put_module(struct memtrace_module *to, uint32_t id, const struct model_module *from,
                       uint64_t shift_ns) {
    *to = (struct memtrace_module){.id = id,
                                   .build_id_size = from->build_id_size,
                                   .start = from->start,
                                   .end = from->end,
                                   .bias = from->bias,
                                   .load_ns = from->load_ns + shift_ns,
                                   .unload_ns =
                                       from->unload_ns != 0 ? from->unload_ns + shift_ns : 0};
    memcpy(to->build_id, from->build_id, sizeof to->build_id);
    snprintf(to->path, sizeof to->path, "%s", from->path);
}

/* It is there from when the first process loaded it until the last one unloaded it. */
static void widen_module(struct memtrace_module *known, const struct model_module *module,
                         uint64_t shift_ns) {
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
static uint32_t module_of(struct mergetables *tables, const struct model_module *module,
                          uint64_t shift_ns) {
    for (size_t i = 1; i < tables->module_count; i++) {
        if (is_same_module(&tables->modules[i], module)) {
            widen_module(&tables->modules[i], module, shift_ns);
            return (uint32_t)i;
        }
    }
    if (tables->module_count > MEMTRACE_FRAME_MODULE_MASK) {
        return 0;
    }
    put_module(&tables->modules[tables->module_count], (uint32_t)tables->module_count, module,
               shift_ns);
    return (uint32_t)tables->module_count++;
}

static int add_modules(struct mergetables *tables, const struct model *model,
                       struct mergesource *source) {
    source->modules = calloc(model->module_count + 1, sizeof *source->modules);
    source->bases = calloc(model->module_count + 1, sizeof *source->bases);
    if (source->modules == NULL || source->bases == NULL ||
        array_reserve(&tables->modules, &tables->module_room,
                      tables->module_count + model->module_count + 1,
                      sizeof *tables->modules) != 0) {
        return -1;
    }
    if (tables->module_count == 0) {
        tables->modules[tables->module_count++] = (struct memtrace_module){0};
    }
    source->module_count = model->module_count;
    for (size_t i = 1; i < model->module_count; i++) {
        const struct model_module *module = &model->modules[i];
        uint32_t id = module->path[0] != '\0' ? module_of(tables, module, source->shift_ns) : 0;
        source->modules[i] = id;
        source->bases[i] = id != 0 ? tables->modules[id].bias - module->bias : 0;
    }
    return 0;
}

/* ---- Pools ---- */

/* The number of a pool of this name. */
static int add_pools(struct mergetables *tables, const struct model *model,
                     struct mergesource *source) {
    source->pools = calloc(model->pool_count + 1, sizeof *source->pools);
    if (source->pools == NULL ||
        array_reserve(&tables->pools, &tables->pool_room, tables->pool_count + model->pool_count,
                      sizeof *tables->pools) != 0) {
        return -1;
    }
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
    return 0;
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

/* Room for one more node. In a profile the first places of a leaf lie under its header: no ids. */
static int reserve_node(struct mergetables *tables) {
    if (array_reserve(&tables->nodes, &tables->node_room, tables->node_count + HIDDEN_NODES + 1,
                      sizeof *tables->nodes) != 0) {
        return -1;
    }
    while (tables->node_count % MEMTRACE_LEAF_ITEMS < HIDDEN_NODES) {
        tables->nodes[tables->node_count++] = (struct memtrace_recording_node){0};
    }
    return 0;
}

/* The id of the node, which is added if it is new; 0: out of memory, or too many. */
static uint32_t node_of(struct mergetables *tables, uint32_t parent, uint64_t frame) {
    uint64_t key[2] = {parent, frame};
    uint64_t hash = XXH3_64bits(key, sizeof key);
    uintptr_t known;
    while ((known = (uintptr_t)numbermap_get(&tables->children, hash)) != 0) {
        if (tables->nodes[known].parent == parent && tables->nodes[known].frame == frame) {
            return (uint32_t)known;
        }
        hash++;
    }
    if (reserve_node(tables) != 0 || tables->node_count >> MEMTRACE_CONTEXT_BITS != 0 ||
        numbermap_put(&tables->children, hash, (void *)tables->node_count) != 0) {
        return 0;
    }
    tables->nodes[tables->node_count] = (struct memtrace_recording_node){
        .frame = frame, .parent = parent, .id = (uint32_t)tables->node_count};
    return (uint32_t)tables->node_count++;
}

static int add_nodes(struct mergetables *tables, const struct model *model,
                     struct mergesource *source, struct error *error) {
    source->contexts = calloc(model->node_count + 1, sizeof *source->contexts);
    source->context_count = model->node_count;
    if (source->contexts == NULL) {
        return no_memory(error);
    }
    for (size_t i = 1; i < model->node_count; i++) {
        const struct model_node *node = &model->nodes[i];
        if (node->frame == 0) {
            continue; /* it is not there */
        }
        source->contexts[i] =
            node_of(tables, source->contexts[node->parent], mergesource_frame(source, node->frame));
        if (source->contexts[i] == 0) {
            return tables->node_count >> MEMTRACE_CONTEXT_BITS != 0
                       ? error_set(error, "together they have more than %u contexts",
                                   1u << MEMTRACE_CONTEXT_BITS)
                       : no_memory(error);
        }
    }
    return 0;
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

static struct memtrace_thread_record record_of(const struct model_thread *thread, uint32_t id,
                                               uint64_t shift_ns) {
    struct memtrace_thread_record record = {
        .id = id,
        .tid = thread->tid,
        .state = thread->alive ? MEMTRACE_THREAD_ALIVE : MEMTRACE_THREAD_ENDED,
        .start_ns = thread->start_ns + shift_ns,
        .end_ns = thread->end_ns != 0 ? thread->end_ns + shift_ns : 0,
        .counts = {.alloc_count = thread->allocations,
                   .alloc_bytes = thread->total_bytes,
                   .free_count = thread->frees,
                   .free_bytes = thread->freed_bytes},
        .foreign_free_count = thread->foreign_frees,
        .foreign_free_bytes = thread->foreign_freed_bytes};
    memcpy(record.name, thread->name, sizeof record.name);
    return record;
}

static int add_threads(struct mergetables *tables, const struct model *model,
                       struct mergesource *source, struct error *error) {
    if (array_reserve(&tables->threads, &tables->thread_room,
                      tables->thread_count + model->thread_count, sizeof *tables->threads) != 0) {
        return no_memory(error);
    }
    for (size_t i = 0; i < model->thread_count; i++) {
        uint32_t id = mergesource_thread(source, tables, model->threads[i].id);
        if (id == 0) {
            return error_set(error, "together they have more than %d threads",
                             MERGETABLES_THREADS - FIRST_THREAD);
        }
        tables->threads[tables->thread_count++] =
            record_of(&model->threads[i], id, source->shift_ns);
    }
    return 0;
}

void mergetables_count(const struct mergetables *tables, struct memtrace_header *header) {
    header->thread_count = tables->thread_ids + FIRST_THREAD;
    header->module_count = (uint32_t)tables->module_count;
    header->pool_count = (uint32_t)tables->pool_count;
    header->context_count = tables->node_count;
}

int mergetables_add(struct mergetables *tables, const struct model *model, uint64_t shift_ns,
                    struct mergesource *source, struct error *error) {
    *source = (struct mergesource){.shift_ns = shift_ns};
    if (add_modules(tables, model, source) != 0 || add_pools(tables, model, source) != 0) {
        return no_memory(error);
    }
    return add_nodes(tables, model, source, error) == 0 ? add_threads(tables, model, source, error)
                                                        : -1;
}
