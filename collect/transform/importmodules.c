/* SPDX-License-Identifier: MIT */
/* importmodules.c: see importmodules.h. */
#include "collect/transform/importmodules.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MOST = MEMTRACE_FRAME_MODULE_MASK + 1 };

/* Room for one more. 0 or -1. */
static int reserve(struct importmodules *modules) {
    size_t capacity = modules->capacity != 0 ? modules->capacity * 2 : 64;
    struct memtrace_module *grown;
    if (modules->count < modules->capacity) {
        return 0;
    }
    grown = reallocarray(modules->items, capacity, sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    modules->items = grown;
    modules->capacity = capacity;
    if (modules->count == 0) {
        grown[modules->count++] = (struct memtrace_module){0};
    }
    return 0;
}

int64_t importmodules_id(struct importmodules *modules, const struct heaptrackfile_module *module) {
    uint64_t key = XXH3_64bits_withSeed(module->path, strlen(module->path), module->base);
    void *known = numbermap_get(&modules->ids, key);
    size_t id = (size_t)(uintptr_t)known;
    struct memtrace_module *item;
    if (module->path[0] == '\0') {
        return 0;
    }
    if (known == NULL) {
        if (reserve(modules) != 0) {
            return -1;
        }
        if (modules->count == MOST) {
            return 0;
        }
        id = modules->count++;
        item = &modules->items[id];
        *item = (struct memtrace_module){
            .id = (uint32_t)id, .start = module->start, .end = module->end, .bias = module->base};
        snprintf(item->path, sizeof item->path, "%s", module->path);
        if (numbermap_put(&modules->ids, key, (void *)(uintptr_t)id) != 0) {
            return -1;
        }
    }
    item = &modules->items[id];
    item->start = module->start < item->start ? module->start : item->start;
    item->end = module->end > item->end ? module->end : item->end;
    return (int64_t)id;
}

int importmodules_map(struct importmodules *modules, const struct heaptrackfile_module *module) {
    int64_t id = importmodules_id(modules, module);
    if (id <= 0) {
        return (int)id;
    }
    if (modules->mapped_count == modules->mapped_capacity) {
        size_t capacity = modules->mapped_capacity != 0 ? modules->mapped_capacity * 2 : 64;
        uint32_t *grown = reallocarray(modules->mapped, capacity, sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        modules->mapped = grown;
        modules->mapped_capacity = capacity;
    }
    modules->mapped[modules->mapped_count++] = (uint32_t)id;
    return 0;
}

void importmodules_unmap_all(struct importmodules *modules) {
    modules->mapped_count = 0;
}

uint32_t importmodules_at(const struct importmodules *modules, uint64_t address) {
    for (size_t i = 0; i < modules->mapped_count; i++) {
        const struct memtrace_module *item = &modules->items[modules->mapped[i]];
        if (address >= item->start && address < item->end) {
            return item->id;
        }
    }
    return 0;
}

int importmodules_write(const struct importmodules *modules, struct recordfile *file,
                        struct error *error) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_MODULES};
    if (modules->count < 2) {
        return 0;
    }
    block.items = (uint32_t)modules->count - 1;
    return recordfile_append(file, &block, &modules->items[1], block.items * sizeof *modules->items,
                             error);
}

void importmodules_free(struct importmodules *modules) {
    free(modules->items);
    free(modules->mapped);
    numbermap_free(&modules->ids);
    *modules = (struct importmodules){0};
}
