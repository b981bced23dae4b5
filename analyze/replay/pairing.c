/* SPDX-License-Identifier: MIT */
/* pairing.c: rings of the newest blocks, one a thread id, before a hash table. See pairing.h. */
#include "analyze/replay/pairing.h"

#include "analyze/base/job.h"

enum {
    FIRST_RING = 64,
    LARGEST_RING = 1 << 22,
};

/* ---- The map of what outlives its ring ---- */

enum { FIRST_CAPACITY = 16, DOUBLED_UP_TO = 4096 };

/* Multiplication spreads numbers that follow each other. The upper eight bits choose the part, the
 * lower 32 the place in it. */
static uint64_t blockmap_spread(uint64_t key) {
    uint64_t product = key * UINT64_C(0x9e3779b97f4a7c15);
    return product ^ product >> 32;
}

static struct blockmap_part *blockmap_part_of(struct blockmap *map, uint64_t key) {
    return &map->parts[blockmap_spread(key) >> 56];
}

/* Where an item would be if it were alone. */
static uint32_t blockmap_home(const struct blockmap_part *part, uint64_t key) {
    return (uint32_t)((blockmap_spread(key) & UINT32_MAX) * part->capacity >> 32);
}

static uint32_t blockmap_after(const struct blockmap_part *part, uint32_t at) {
    return at + 1 < part->capacity ? at + 1 : 0;
}

/* The place of the key, or the empty one where it belongs. */
static uint32_t blockmap_find(const struct blockmap_part *part, uint64_t key) {
    uint32_t at = blockmap_home(part, key);
    while (part->items[at].key != 0 && part->items[at].key != key) {
        at = blockmap_after(part, at);
    }
    return at;
}

static void blockmap_grow(struct blockmap_part *part) {
    struct blockmap_part larger = {.count = part->count};
    uint64_t capacity = part->capacity < DOUBLED_UP_TO
                            ? (uint64_t)part->capacity * 2
                            : (uint64_t)part->capacity + part->capacity / 4;
    if (capacity > UINT32_MAX) {
        job_fail_memory();
    }
    larger.capacity = capacity != 0 ? (uint32_t)capacity : FIRST_CAPACITY;
    larger.items = job_array(larger.capacity, sizeof *larger.items);
    for (uint32_t i = 0; i < part->capacity; i++) {
        if (part->items[i].key != 0) {
            larger.items[blockmap_find(&larger, part->items[i].key)] = part->items[i];
        }
    }
    job_release(part->items);
    *part = larger;
}

void blockmap_free(struct blockmap *map) {
    for (size_t i = 0; i < BLOCKMAP_PARTS; i++) {
        job_release(map->parts[i].items);
    }
    *map = (struct blockmap){0};
}

void blockmap_put(struct blockmap *map, uint64_t key, const struct pairing_block *block) {
    struct blockmap_part *part = blockmap_part_of(map, key);
    uint32_t at;
    int is_new;
    if (part->count >= part->capacity / 4 * 3) {
        blockmap_grow(part);
    }
    at = blockmap_find(part, key);
    is_new = part->items[at].key == 0;
    part->count += (uint32_t)is_new;
    map->count += (size_t)is_new;
    part->items[at] = (struct blockmap_item){key, *block};
}

/* How far it is from one place to another, going forwards. */
static uint32_t blockmap_distance(const struct blockmap_part *part, uint32_t from, uint32_t to) {
    return to >= from ? to - from : to + (part->capacity - from);
}

/* Moves back what the gap at `gap` would hide from its searchers. */
static void blockmap_close_gap(struct blockmap_part *part, uint32_t gap) {
    for (uint32_t at = blockmap_after(part, gap); part->items[at].key != 0;
         at = blockmap_after(part, at)) {
        uint32_t from_home = blockmap_distance(part, blockmap_home(part, part->items[at].key), at);
        if (from_home >= blockmap_distance(part, gap, at)) {
            part->items[gap] = part->items[at];
            gap = at;
        }
    }
    part->items[gap].key = 0;
}

int blockmap_take(struct blockmap *map, uint64_t key, struct pairing_block *block) {
    struct blockmap_part *part = blockmap_part_of(map, key);
    uint32_t at;
    if (part->count == 0) {
        return 0;
    }
    at = blockmap_find(part, key);
    if (part->items[at].key == 0) {
        return 0;
    }
    *block = part->items[at].block;
    blockmap_close_gap(part, at);
    part->count--;
    map->count--;
    return 1;
}

int blockmap_each(const struct blockmap *map,
                  int (*visit)(void *context, const struct blockmap_item *item), void *context) {
    int result = 0;
    for (size_t i = 0; i < BLOCKMAP_PARTS; i++) {
        const struct blockmap_part *part = &map->parts[i];
        for (uint32_t at = 0; at < part->capacity && result == 0; at++) {
            if (part->items[at].key != 0) {
                result = visit(context, &part->items[at]);
            }
        }
    }
    return result;
}

struct pairing_maps {
    struct blockmap outlived;
    struct blockmap waiting; /* ends without a block: context is the thread */
};

struct pairing *pairing_new(void) {
    struct pairing *pairing = job_array(1, sizeof *pairing);
    pairing->maps = job_array(1, sizeof *pairing->maps);
    return pairing;
}

void pairing_free(struct pairing *pairing) {
    if (pairing == NULL) {
        return;
    }
    for (size_t i = 0; i < PAIRING_THREADS; i++) {
        job_release(pairing->rings[i].slots);
    }
    blockmap_free(&pairing->maps->outlived);
    blockmap_free(&pairing->maps->waiting);
    job_release(pairing->maps);
    job_release(pairing);
}

static uint64_t pairing_key(struct event_block name) {
    return (uint64_t)name.thread << PAIRING_NUMBER_BITS | name.number;
}

/* Twice as many slots. */
static void pairing_grow(struct pairing_ring *ring) {
    struct pairing_ring larger = *ring;
    larger.size = ring->size != 0 ? ring->size * 2 : FIRST_RING;
    larger.slots = job_array(larger.size, sizeof *larger.slots);
    for (uint64_t i = 1; i <= ring->size && i <= ring->next; i++) {
        *pairing_slot(&larger, ring->next - i) = *pairing_slot(ring, ring->next - i);
    }
    job_release(ring->slots);
    *ring = larger;
}

/* Pushes out the slot's block, if it lives. */
static void pairing_push_out(struct pairing *pairing, struct pairing_ring *ring, uint32_t thread,
                             uint64_t number) {
    struct pairing_block *slot = pairing_slot(ring, number);
    struct pairing_block block = *slot;
    if (!(block.context & PAIRING_LIVE)) {
        return;
    }
    slot->context = 0;
    ring->live--;
    block.context &= ~PAIRING_LIVE;
    blockmap_put(&pairing->maps->outlived,
                 pairing_key((struct event_block){.thread = thread, .number = number}), &block);
}

/* Makes `number` the newest of its ring. */
static void pairing_advance(struct pairing *pairing, struct pairing_ring *ring, uint32_t thread,
                            uint64_t number) {
    uint64_t distance;
    if (ring->size == 0 ||
        (ring->live >= ring->size / 4 && pairing_slot(ring, number)->context & PAIRING_LIVE &&
         ring->size < LARGEST_RING)) {
        pairing_grow(ring);
    }
    distance = number + 1 - ring->next;
    for (uint64_t i = 0; i < distance && i < ring->size; i++) {
        /* The slot of next + i holds the number that is a ring older. */
        if (ring->next + i >= ring->size) {
            pairing_push_out(pairing, ring, thread, ring->next + i - ring->size);
        }
    }
    ring->next = number + 1;
}

/* 1: the block's end had waited. */
static int pairing_met_before(struct pairing *pairing, struct event_block name,
                              struct pairing_end *end) {
    struct pairing_block waited;
    if (name.number > pairing->last_waiting[name.thread] ||
        !blockmap_take(&pairing->maps->waiting, pairing_key(name), &waited)) {
        return 0;
    }
    *end =
        (struct pairing_end){.thread = waited.context, .tick = waited.tick, .time_ns = waited.size};
    return 1;
}

int pairing_add_any(struct pairing *pairing, struct event_block name, struct pairing_block block,
                    struct pairing_end *end) {
    struct pairing_ring *ring;
    struct pairing_block *slot;
    if (!pairing_is_name(name)) {
        return 0;
    }
    ring = &pairing->rings[name.thread];
    if (name.number >= ring->next) {
        pairing_advance(pairing, ring, name.thread, name.number);
    }
    if (pairing_met_before(pairing, name, end)) {
        return 1;
    }
    if (!pairing_is_inside(ring, name.number)) {
        blockmap_put(&pairing->maps->outlived, pairing_key(name), &block);
        return 0;
    }
    slot = pairing_slot(ring, name.number);
    ring->live += !(slot->context & PAIRING_LIVE);
    *slot = block;
    slot->context |= PAIRING_LIVE;
    return 0;
}

int pairing_take_outlived(struct pairing *pairing, struct event_block name,
                          struct pairing_block *block) {
    return pairing_is_name(name) &&
           blockmap_take(&pairing->maps->outlived, pairing_key(name), block);
}

void pairing_wait(struct pairing *pairing, struct event_block name, struct pairing_end end) {
    struct pairing_block waits = {.size = end.time_ns, .context = end.thread, .tick = end.tick};
    if (!pairing_is_name(name)) {
        return;
    }
    if (name.number > pairing->last_waiting[name.thread]) {
        pairing->last_waiting[name.thread] = name.number;
    }
    blockmap_put(&pairing->maps->waiting, pairing_key(name), &waits);
}

uint64_t pairing_waiting(const struct pairing *pairing) {
    return pairing->maps->waiting.count;
}

static struct event_block pairing_name(uint64_t key) {
    return (struct event_block){.thread = (uint32_t)(key >> PAIRING_NUMBER_BITS),
                                .number = key & ((UINT64_C(1) << PAIRING_NUMBER_BITS) - 1)};
}

static int pairing_each_of_ring(const struct pairing_ring *ring, uint32_t thread,
                                const struct pairing_visitor *visitor) {
    int result = 0;
    for (uint64_t i = ring->size; i != 0 && result == 0; i--) {
        struct event_block name = {.thread = thread, .number = ring->next - i};
        struct pairing_block block;
        if (ring->next < i || !(pairing_slot(ring, name.number)->context & PAIRING_LIVE)) {
            continue;
        }
        block = *pairing_slot(ring, name.number);
        block.context &= ~PAIRING_LIVE;
        result = visitor->lives(visitor->context, name, &block);
    }
    return result;
}

static int visit_outlived(void *context, const struct blockmap_item *item) {
    const struct pairing_visitor *visitor = context;
    return visitor->lives(visitor->context, pairing_name(item->key), &item->block);
}

static int visit_waiting(void *context, const struct blockmap_item *item) {
    const struct pairing_visitor *visitor = context;
    struct pairing_end end = {
        .thread = item->block.context, .tick = item->block.tick, .time_ns = item->block.size};
    return visitor->waits(visitor->context, pairing_name(item->key), &end);
}

int pairing_each(const struct pairing *pairing, const struct pairing_visitor *visitor) {
    void *context = (void *)visitor;
    int result = blockmap_each(&pairing->maps->outlived, visit_outlived, context);
    for (uint32_t thread = 0; thread < PAIRING_THREADS && result == 0; thread++) {
        result = pairing_each_of_ring(&pairing->rings[thread], thread, visitor);
    }
    return result != 0 ? result : blockmap_each(&pairing->maps->waiting, visit_waiting, context);
}

uint64_t pairing_living(const struct pairing *pairing) {
    uint64_t count = pairing->maps->outlived.count;
    for (uint32_t thread = 0; thread < PAIRING_THREADS; thread++) {
        count += pairing->rings[thread].live;
    }
    return count;
}
