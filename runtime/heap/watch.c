/* SPDX-License-Identifier: MIT */
/* watch.c: see watch.h. */
#include "runtime/heap/watch.h"

#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"

enum { FIRST_CAPACITY = 1024 };

/* --- addresses -------------------------------------------------------------------------------- */

/* The entry of an address, or the free one where it belongs. */
static struct watch_entry *watch_find(const struct watches *watches, uintptr_t address) {
    uint64_t hash = (uint64_t)(address >> 3) * UINT64_C(0x9e3779b97f4a7c15);
    size_t place = (size_t)(hash >> 32) & (watches->capacity - 1);
    while (watches->entries[place].address != 0 && watches->entries[place].address != address) {
        place = (place + 1) & (watches->capacity - 1);
    }
    return &watches->entries[place];
}

/* Whether the block of an entry is alive and this thread's, and its size. */
static int watch_is_alive(const struct watches *watches, const struct shadow_heap *heap,
                          const struct watch_entry *entry, uint64_t *size) {
    uint8_t *leaf = heap_leaf(heap, entry->address);
    struct heap_block block;
    int found =
        leaf != NULL &&
        ((heap_decode_fine(heap, leaf, entry->address, &block) &&
          block.start == (entry->address & ~(uintptr_t)7)) ||
         (heap_decode_coarse(heap, leaf, entry->address, &block) && block.start == entry->address));
    found = found && block.thread == watches->thread;
    *size = found ? block.size : 0;
    return found;
}

static void watch_give_back(struct watch_entry *entries, size_t capacity) {
    if (entries != NULL) {
        sys_unmap(entries, capacity * sizeof *entries);
    }
}

/* A table with room, of what is alive. 0, or -1: no memory. */
static int watch_make_room(struct watches *watches, const struct shadow_heap *heap) {
    struct watches fresh = *watches;
    size_t alive = 0;
    for (size_t i = 0; i < watches->capacity; i++) {
        uint64_t size;
        alive += watches->entries[i].address != 0 &&
                 watch_is_alive(watches, heap, &watches->entries[i], &size);
    }
    fresh.capacity = FIRST_CAPACITY;
    while (fresh.capacity < alive * 2) {
        fresh.capacity *= 2;
    }
    fresh.entries = sys_map(fresh.capacity * sizeof *fresh.entries);
    fresh.used = 0;
    if (fresh.entries == NULL) {
        return -1;
    }
    own_maps_keep(fresh.entries); /* a thread that is there has them, too */
    for (size_t i = 0; i < watches->capacity; i++) {
        const struct watch_entry *entry = &watches->entries[i];
        uint64_t size;
        /* Counted and copied apart: one freed in between by another thread leaves room only. */
        if (entry->address != 0 && watch_is_alive(watches, heap, entry, &size)) {
            *watch_find(&fresh, entry->address) = *entry;
            fresh.used++;
        }
    }
    watch_give_back(watches->entries, watches->capacity);
    *watches = fresh;
    return 0;
}

static void watch_keep_address(struct watches *watches, const struct shadow_heap *heap,
                               const struct heap_block *block) {
    struct watch_entry *entry;
    if ((watches->used + 1) * 4 > watches->capacity * 3 && watch_make_room(watches, heap) != 0) {
        watches->lost++;
        return;
    }
    entry = watch_find(watches, block->start);
    watches->used += entry->address == 0;
    *entry = (struct watch_entry){block->start, watches->sequence, block->context};
}

/* --- watches ---------------------------------------------------------------------------------- */

uint32_t watch_begin(struct watches *watches, const struct watch_limits *limits) {
    struct watch *watch;
    if (watches->depth == WATCH_DEPTH) {
        return 0;
    }
    watch = &watches->item[watches->depth++];
    *watch = (struct watch){
        .number = ++watches->last_number, .limits = *limits, .start_sequence = watches->sequence};
    watches->leaks += limits->leaks != 0;
    return watch->number;
}

static void watch_drop_last(struct watches *watches) {
    watches->depth--;
    watches->leaks -= watches->item[watches->depth].limits.leaks != 0;
    if (watches->leaks == 0) {
        watch_give_back(watches->entries, watches->capacity);
        watches->entries = NULL;
        watches->capacity = 0;
        watches->used = 0;
        watches->lost = 0;
    }
}

static void watch_add_leaks(const struct watches *watches, const struct shadow_heap *heap,
                            const struct watch *watch, struct watch_result *result) {
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < watches->capacity; i++) {
        const struct watch_entry *entry = &watches->entries[i];
        uint64_t size;
        if (entry->address == 0 || entry->sequence <= watch->start_sequence ||
            !watch_is_alive(watches, heap, entry, &size)) {
            continue;
        }
        result->leaked_blocks++;
        result->leaked_bytes += size;
        if (entry->sequence < first) {
            first = entry->sequence;
            result->leaked_context = entry->context;
        }
    }
}

int watch_end(struct watches *watches, const struct shadow_heap *heap, uint32_t number,
              struct watch_result *result) {
    const struct watch *watch;
    uint32_t depth = watches->depth;
    int status;
    while (depth > 0 && watches->item[depth - 1].number != number) {
        depth--;
    }
    *result = (struct watch_result){0};
    if (depth == 0) {
        return -1;
    }
    while (watches->depth > depth) { /* left without an end */
        watch_drop_last(watches);
    }
    watch = &watches->item[depth - 1];
    result->allocations = watch->allocations;
    result->bytes = watch->bytes;
    result->over_context = watch->over_context;
    if (watch->limits.leaks) {
        watch_add_leaks(watches, heap, watch, result);
    }
    status = watch->limits.leaks && watches->lost != 0 ? -1 : 0;
    watch_drop_last(watches);
    return status;
}

void watch_alloc(struct watches *watches, const struct shadow_heap *heap,
                 const struct heap_block *block) {
    watches->sequence++;
    for (uint32_t i = 0; i < watches->depth; i++) {
        struct watch *watch = &watches->item[i];
        watch->allocations++;
        watch->bytes += block->size;
        if (watch->over_context == 0 && (watch->allocations > watch->limits.most_allocations ||
                                         watch->bytes > watch->limits.most_bytes)) {
            watch->over_context = block->context;
        }
    }
    if (watches->leaks != 0) {
        watch_keep_address(watches, heap, block);
    }
}

void watch_reset(struct watches *watches) {
    watch_give_back(watches->entries, watches->capacity);
    *watches = (struct watches){.last_number = watches->last_number};
}
