/* SPDX-License-Identifier: MIT */
/* pairing.c: rings of the newest blocks, one a thread id, before a hash table. See pairing.h. */
#include "analyze/replay/pairing.h"

#include "analyze/replay/blockmap.h"

#include <stdlib.h>

enum {
    THREADS = 1 << MEMTRACE_THREAD_BITS,
    NUMBER_BITS = 48,
    FIRST_RING = 64,
    LARGEST_RING = 1 << 22,
};
#define LIVE (1u << 31) /* in a slot's context */

/* The numbers [next - size, next) have a slot each; what was pushed out of it is in the map. */
struct ring {
    struct pairing_block *slots;
    uint64_t next;
    uint32_t size; /* a power of two; 0: none yet */
    uint32_t live;
};

struct pairing {
    struct ring rings[THREADS];
    struct blockmap outlived;
    struct blockmap waiting;        /* ends without a block: context is the thread */
    uint64_t last_waiting[THREADS]; /* the highest number that ever waited */
};

struct pairing *pairing_new(void) {
    return calloc(1, sizeof(struct pairing));
}

void pairing_free(struct pairing *pairing) {
    if (pairing == NULL) {
        return;
    }
    for (size_t i = 0; i < THREADS; i++) {
        free(pairing->rings[i].slots);
    }
    blockmap_free(&pairing->outlived);
    blockmap_free(&pairing->waiting);
    free(pairing);
}

static uint64_t key_of(struct event_block name) {
    return (uint64_t)name.thread << NUMBER_BITS | name.number;
}

static int is_name(struct event_block name) {
    return name.number != 0 && name.number >> NUMBER_BITS == 0 && name.thread < THREADS;
}

static struct pairing_block *slot_of(const struct ring *ring, uint64_t number) {
    return &ring->slots[number & (ring->size - 1)];
}

static int is_inside(const struct ring *ring, uint64_t number) {
    return number < ring->next && number + ring->size >= ring->next;
}

/* Twice as many slots. 0, or -1: out of memory. */
static int grow(struct ring *ring) {
    struct ring larger = *ring;
    larger.size = ring->size != 0 ? ring->size * 2 : FIRST_RING;
    larger.slots = calloc(larger.size, sizeof *larger.slots);
    if (larger.slots == NULL) {
        return -1;
    }
    for (uint64_t i = 1; i <= ring->size && i <= ring->next; i++) {
        *slot_of(&larger, ring->next - i) = *slot_of(ring, ring->next - i);
    }
    free(ring->slots);
    *ring = larger;
    return 0;
}

/* Pushes out the slot's block, if it lives. */
static int push_out(struct pairing *pairing, struct ring *ring, uint32_t thread, uint64_t number) {
    struct pairing_block *slot = slot_of(ring, number);
    struct pairing_block block = *slot;
    if (!(block.context & LIVE)) {
        return 0;
    }
    slot->context = 0;
    ring->live--;
    block.context &= ~LIVE;
    return blockmap_put(&pairing->outlived,
                        key_of((struct event_block){.thread = thread, .number = number}), &block);
}

/* Makes `number` the newest of its ring. */
static int advance(struct pairing *pairing, struct ring *ring, uint32_t thread, uint64_t number) {
    uint64_t distance;
    if (ring->size == 0 || (ring->live >= ring->size / 4 && slot_of(ring, number)->context & LIVE &&
                            ring->size < LARGEST_RING)) {
        if (grow(ring) != 0) {
            return -1;
        }
    }
    distance = number + 1 - ring->next;
    for (uint64_t i = 0; i < distance && i < ring->size; i++) {
        /* The slot of next + i holds the number that is a ring older. */
        if (ring->next + i >= ring->size &&
            push_out(pairing, ring, thread, ring->next + i - ring->size) != 0) {
            return -1;
        }
    }
    ring->next = number + 1;
    return 0;
}

/* 1: the block's end had waited. */
static int met_before(struct pairing *pairing, struct event_block name, struct pairing_end *end) {
    struct pairing_block waited;
    if (name.number > pairing->last_waiting[name.thread] ||
        !blockmap_take(&pairing->waiting, key_of(name), &waited)) {
        return 0;
    }
    *end =
        (struct pairing_end){.thread = waited.context, .tick = waited.tick, .time_ns = waited.size};
    return 1;
}

/* The next number of its ring, in a slot that is free: as nearly always. */
static int add_next(struct pairing *pairing, struct event_block name,
                    const struct pairing_block *block) {
    struct ring *ring = &pairing->rings[name.thread];
    struct pairing_block *slot;
    if (name.number != ring->next || ring->size == 0 ||
        name.number <= pairing->last_waiting[name.thread]) {
        return 0;
    }
    slot = slot_of(ring, name.number);
    if (slot->context & LIVE) {
        return 0;
    }
    *slot = *block;
    slot->context |= LIVE;
    ring->live++;
    ring->next++;
    return 1;
}

int pairing_add(struct pairing *pairing, struct event_block name, const struct pairing_block *block,
                struct pairing_end *end) {
    struct ring *ring;
    struct pairing_block *slot;
    if (!is_name(name) || add_next(pairing, name, block)) {
        return 0;
    }
    ring = &pairing->rings[name.thread];
    if (name.number >= ring->next && advance(pairing, ring, name.thread, name.number) != 0) {
        return -1;
    }
    if (met_before(pairing, name, end)) {
        return 1;
    }
    if (!is_inside(ring, name.number)) {
        return blockmap_put(&pairing->outlived, key_of(name), block);
    }
    slot = slot_of(ring, name.number);
    ring->live += !(slot->context & LIVE);
    *slot = *block;
    slot->context |= LIVE;
    return 0;
}

int pairing_take(struct pairing *pairing, struct event_block name, struct pairing_block *block) {
    struct ring *ring;
    if (!is_name(name)) {
        return 0;
    }
    ring = &pairing->rings[name.thread];
    if (is_inside(ring, name.number)) {
        struct pairing_block *slot = slot_of(ring, name.number);
        if (slot->context & LIVE) {
            *block = *slot;
            block->context &= ~LIVE;
            slot->context = 0;
            ring->live--;
            return 1;
        }
    }
    return blockmap_take(&pairing->outlived, key_of(name), block);
}

int pairing_wait(struct pairing *pairing, struct event_block name, struct pairing_end end) {
    struct pairing_block waits = {.size = end.time_ns, .context = end.thread, .tick = end.tick};
    if (!is_name(name)) {
        return 0;
    }
    if (name.number > pairing->last_waiting[name.thread]) {
        pairing->last_waiting[name.thread] = name.number;
    }
    return blockmap_put(&pairing->waiting, key_of(name), &waits);
}

uint64_t pairing_waiting(const struct pairing *pairing) {
    return pairing->waiting.count;
}

static struct event_block name_of(uint64_t key) {
    return (struct event_block){.thread = (uint32_t)(key >> NUMBER_BITS),
                                .number = key & ((UINT64_C(1) << NUMBER_BITS) - 1)};
}

static int each_of_ring(const struct ring *ring, uint32_t thread,
                        const struct pairing_visitor *visitor) {
    int result = 0;
    for (uint64_t i = ring->size; i != 0 && result == 0; i--) {
        struct event_block name = {.thread = thread, .number = ring->next - i};
        struct pairing_block block;
        if (ring->next < i || !(slot_of(ring, name.number)->context & LIVE)) {
            continue;
        }
        block = *slot_of(ring, name.number);
        block.context &= ~LIVE;
        result = visitor->lives(visitor->context, name, &block);
    }
    return result;
}

int pairing_each(const struct pairing *pairing, const struct pairing_visitor *visitor) {
    int result = 0;
    for (size_t i = 0; i < pairing->outlived.capacity && result == 0; i++) {
        const struct blockmap_item *item = &pairing->outlived.items[i];
        if (item->key != 0) {
            result = visitor->lives(visitor->context, name_of(item->key), &item->block);
        }
    }
    for (uint32_t thread = 0; thread < THREADS && result == 0; thread++) {
        result = each_of_ring(&pairing->rings[thread], thread, visitor);
    }
    for (size_t i = 0; i < pairing->waiting.capacity && result == 0; i++) {
        const struct blockmap_item *item = &pairing->waiting.items[i];
        struct pairing_end end = {
            .thread = item->block.context, .tick = item->block.tick, .time_ns = item->block.size};
        if (item->key != 0) {
            result = visitor->waits(visitor->context, name_of(item->key), &end);
        }
    }
    return result;
}

uint64_t pairing_living(const struct pairing *pairing) {
    uint64_t count = pairing->outlived.count;
    for (uint32_t thread = 0; thread < THREADS; thread++) {
        count += pairing->rings[thread].live;
    }
    return count;
}
