/* SPDX-License-Identifier: MIT */
/* importlive.c: see importlive.h. */
#include "collect/transform/importlive.h"

#include <stdlib.h>
#include <string.h>

/* blockmap.h knows no key of 0. */
static uint64_t address_key(uint64_t address) {
    return address != 0 ? address : UINT64_MAX;
}

static int reserve_key(struct importlive *live, uint64_t key) {
    size_t count = live->key_count != 0 ? live->key_count : 1024;
    size_t *grown;
    while (count <= key) {
        count *= 2;
    }
    if (count == live->key_count) {
        return 0;
    }
    grown = reallocarray(live->newest, count, sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    memset(grown + live->key_count, 0, (count - live->key_count) * sizeof *grown);
    live->newest = grown;
    live->key_count = count;
    return 0;
}

/* A place for a block, + 1. 0: out of memory. */
static size_t take_place(struct importlive *live) {
    size_t place = live->free;
    if (place != 0) {
        live->free = live->blocks[place - 1].before;
        return place;
    }
    if (live->block_count == live->block_capacity) {
        size_t capacity = live->block_capacity != 0 ? live->block_capacity * 2 : 1024;
        struct importlive_block *grown = reallocarray(live->blocks, capacity, sizeof *grown);
        if (grown == NULL) {
            return 0;
        }
        live->blocks = grown;
        live->block_capacity = capacity;
    }
    return ++live->block_count;
}

int importlive_begin(struct importlive *live, enum heaptrackfile_key kind, uint64_t key,
                     uint64_t number, uint64_t size) {
    size_t place;
    if (kind == HEAPTRACKFILE_ADDRESS) {
        const struct pairing_block block = {.size = size, .weight = number};
        return blockmap_put(&live->addresses, address_key(key), &block);
    }
    if (reserve_key(live, key) != 0 || (place = take_place(live)) == 0) {
        return -1;
    }
    live->blocks[place - 1] = (struct importlive_block){number, size, live->newest[key]};
    live->newest[key] = place;
    return 0;
}

struct importlive_block importlive_end(struct importlive *live, enum heaptrackfile_key kind,
                                       uint64_t key) {
    struct importlive_block ended = {0};
    size_t place;
    if (kind == HEAPTRACKFILE_ADDRESS) {
        struct pairing_block block;
        if (live->addresses.count != 0 &&
            blockmap_take(&live->addresses, address_key(key), &block) == 1) {
            ended = (struct importlive_block){.number = block.weight, .size = block.size};
        }
        return ended;
    }
    place = key < live->key_count ? live->newest[key] : 0;
    if (place != 0) {
        ended = live->blocks[place - 1];
        live->newest[key] = ended.before;
        live->blocks[place - 1].before = live->free;
        live->free = place;
    }
    return ended;
}

void importlive_free(struct importlive *live) {
    blockmap_free(&live->addresses);
    free(live->newest);
    free(live->blocks);
    *live = (struct importlive){0};
}
