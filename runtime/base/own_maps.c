/* SPDX-License-Identifier: MIT */
/* own_maps.c: what the runtime has mapped. See own_maps.h. */
#include "runtime/base/own_maps.h"

#include "runtime/base/compiler.h"

struct memtrace_own_maps own_maps;

static uint8_t stays[MEMTRACE_OWN_MAPS];

/* A place that nobody uses becomes the caller's. NULL: all are taken. */
static struct memtrace_own_map *own_maps_take(void) {
    for (uint32_t i = 0; i < MEMTRACE_OWN_MAPS; i++) {
        uint64_t expected = 0;
        if (LOAD_RELAXED(&own_maps.map[i].start) == 0 &&
            __atomic_compare_exchange_n(&own_maps.map[i].start, &expected,
                                        MEMTRACE_OWN_BEING_WRITTEN, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            uint32_t count = LOAD_RELAXED(&own_maps.count);
            while (count <= i && !__atomic_compare_exchange_n(&own_maps.count, &count, i + 1, 0,
                                                              __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
            }
            return &own_maps.map[i];
        }
    }
    return NULL;
}

void own_maps_add(void *address, size_t size) {
    struct memtrace_own_map *map = own_maps_take();
    if (map != NULL) {
        if (LOAD_RELAXED(&stays[map - own_maps.map]) != 0) {
            STORE_RELAXED(&stays[map - own_maps.map], 0);
        }
        STORE_RELAXED(&map->size, size);
        STORE_RELEASE(&map->start, (uintptr_t)address);
    }
}

/* The mapping that begins at this address; NULL: it is not in the list. */
static struct memtrace_own_map *own_maps_find(const void *address) {
    for (uint32_t i = LOAD_ACQUIRE(&own_maps.count); i-- > 0;) {
        if (LOAD_RELAXED(&own_maps.map[i].start) == (uintptr_t)address) {
            return &own_maps.map[i];
        }
    }
    return NULL;
}

void own_maps_remove(void *address) {
    struct memtrace_own_map *map = own_maps_find(address);
    if (map != NULL) {
        STORE_RELEASE(&map->start, (uint64_t)0);
    }
}

void own_maps_resize(const void *address, size_t size) {
    struct memtrace_own_map *map = own_maps_find(address);
    if (map != NULL) {
        STORE_RELAXED(&map->size, size);
    }
}

void own_maps_keep(const void *address) {
    const struct memtrace_own_map *map = own_maps_find(address);
    if (map != NULL) {
        STORE_RELAXED(&stays[map - own_maps.map], 1);
    }
}

void own_maps_give_up(void (*unmap)(void *address, size_t size)) {
    for (uint32_t i = LOAD_ACQUIRE(&own_maps.count); i-- > 0;) {
        uint64_t start = LOAD_ACQUIRE(&own_maps.map[i].start);
        if (start > MEMTRACE_OWN_BEING_WRITTEN && !LOAD_RELAXED(&stays[i])) {
            unmap((void *)(uintptr_t)start, own_maps.map[i].size);
        }
    }
}
