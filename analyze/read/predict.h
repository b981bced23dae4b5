/* SPDX-License-Identifier: MIT */
/*
 * predict.h: the columns of an events block, and what it lets one expect of the next event. Encoder
 * and decoder keep the same state event by event, so that what comes as expected costs no bytes but
 * its op's. docs/format.md tells the rules; a change here is a change of the format.
 *
 * Called by eventencode.c and eventdecode.c.
 */
#ifndef ANALYZE_READ_PREDICT_H
#define ANALYZE_READ_PREDICT_H

#include "analyze/read/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* ---- Columns, and the bits of an op (docs/format.md) ---- */

/* In their order. Numbers that follow no pattern are split: their low bytes here, what is above
 * there, so that the compressor finds the little order that the high ones have. */
enum column {
    COLUMN_OPS = 0,   /* a byte an event, and one for each numbers gap and old block */
    COLUMN_TIMES = 1, /* the first event's time, then differences, signed */
    COLUMN_SITES = 2, /* indices of known sites, split */
    COLUMN_SITES_HIGH = 3,
    COLUMN_CONTEXTS = 4, /* of new sites: difference to the new site before, signed */
    COLUMN_SIZES = 5,    /* of new sites */
    COLUMN_SHAPES = 6,   /* of new sites: slack, flags, alignment, weight */
    COLUMN_BLOCKS = 7,   /* which block is freed, split */
    COLUMN_BLOCKS_HIGH = 8,
    COLUMN_OWNERS = 9,     /* whose block is freed, if not the thread's own */
    COLUMN_ADDRESSES = 10, /* difference to where it was expected */
    COLUMN_PLACES = 11,    /* contexts of frees: as SITES (not split) and CONTEXTS */
    COLUMN_REST = 12,      /* fields of what is rare */
    COLUMNS = 13
};

/* Bits 0 and 1 of an op. */
enum op_kind {
    OP_FREE = 0,
    OP_ALLOC = 1,
    OP_REALLOC = 2, /* the op of a free follows, without time and place: the old block */
    OP_REST = 3,    /* bits 2..6: enum op_rest */
};

enum op_bits {
    OP_KIND = 3,
    OP_BLOCK_SHIFT = 2,   /* of a free: enum op_block, three bits */
    OP_PLACE_SHIFT = 5,   /* of a free: enum op_site, two bits */
    OP_SITE_SHIFT = 2,    /* of an allocation: enum op_site, two bits */
    OP_ADDRESS_SHIFT = 4, /* of an allocation: enum op_address, three bits */
    OP_TIME = 0x80,       /* a difference of time comes before it */
};

enum op_block {
    BLOCK_NEWEST = 0, /* of those allocated in this block and not freed */
    BLOCK_NEWER = 1,  /* the neighbours of the one freed last */
    BLOCK_OLDER = 2,
    BLOCK_BACK = 3,    /* so many before the last allocation */
    BLOCK_DELTA = 4,   /* so far from the one freed last, signed */
    BLOCK_FOREIGN = 5, /* owner, then so far from its one freed last, signed */
};

enum op_site {
    SITE_EXPECTED = 0, /* that followed last time */
    SITE_KNOWN = 1,
    SITE_NEW = 2,
    SITE_NONE = 3, /* of a free: its context was not recorded */
};

enum op_address {
    ADDRESS_NONE = 0,     /* not recorded */
    ADDRESS_REUSED = 1,   /* of the block of its class that was freed last */
    ADDRESS_FRONTIER = 2, /* behind the last allocation that reused none */
    ADDRESS_DELTA = 3,    /* so far from there, signed */
    ADDRESS_BELOW = 4,    /* of one of its class that was freed before: how many places */
    ADDRESS_SAME = 5,     /* of a realloc: the old block's */
};

enum op_rest {
    REST_MAP = 0,
    REST_MARK = 1,
    REST_LOST = 2,
    REST_NUMBERS = 3, /* no event: so many numbers are left out */
};

/* ---- What comes next ---- */

enum {
    PREDICT_CLASSES = 1024, /* of usable size, by which allocators reuse addresses */
    PREDICT_DEPTH = 16,     /* so many addresses at the top of a class's stack are looked at */
    PREDICT_THREADS = 1 << MEMTRACE_THREAD_BITS,
};

#define PREDICT_ADDRESS_MASK ((UINT64_C(1) << 48) - 1)

/* What allocations have in common: where, how much and how. Of frees: where. */
struct predict_site {
    uint64_t size;
    uint64_t weight;
    uint32_t context;
    uint32_t slack;
    uint8_t flags;
    uint8_t alignment;
    uint32_t next; /* the site that followed last time; itself as long as none did */
};

/* Sites in the order of their first use. */
struct predict_sites {
    struct predict_site *site;
    uint32_t count;
    uint32_t capacity;
    uint32_t last; /* used */
};

/* An allocation of this block. Slot s is number first_number + s - 1. */
struct predict_slot {
    uint64_t address;
    uint32_t site;
    uint32_t below; /* freed ones of a class are a stack; 0: the lowest */
};

/* Its live neighbours by number; slot 0 is the end of their ring. Apart from the slots, because a
 * reader without addresses needs no more than this, and frees find theirs in no order: what is
 * small stays in the processor's cache. */
struct predict_link {
    uint32_t older;
    uint32_t newer; /* PREDICT_FREED: it does not live */
};
#define PREDICT_FREED UINT32_MAX

struct predict {
    struct predict_sites sites;
    struct predict_sites places; /* where frees come from; only `context` is used */
    struct predict_slot *slots;
    struct predict_link *links;
    uint64_t slot_count;    /* slot 0 included; of links */
    uint64_t slot_capacity; /* at least slot_count; of both */
    uint64_t first_number;
    uint64_t newest;               /* number of the last allocation */
    uint64_t last;                 /* number of the thread's own block that was freed last */
    uint64_t last_slot;            /* its slot; 0: not of this block */
    struct predict_link last_link; /* its neighbours when it was freed */
    uint64_t frontier;             /* where the allocator goes on if it does not reuse */
    uint32_t thread;
    uint32_t top[PREDICT_CLASSES];     /* freed last of each class: slot; 0: none */
    uint64_t foreign[PREDICT_THREADS]; /* freed last of each other thread: number */
};

/* Everything as at the start of a block. 0, or -1: out of memory. Start from {0}. */
int predict_start(struct predict *predict, uint32_t thread, uint64_t first_number);
void predict_end(struct predict *predict); /* frees what it holds */

/* Adds a site, its `next` set, and returns its index; or -1: out of memory. */
int64_t predict_add_site(struct predict_sites *sites, const struct predict_site *site);

/* Grows the slots up to this number. 0, or -1: out of memory. */
int predict_grow(struct predict *predict, uint64_t slot);

static inline uint32_t predict_next_site(const struct predict_sites *sites) {
    return sites->site[sites->last].next;
}

static inline void predict_use_site(struct predict_sites *sites, uint32_t index) {
    sites->site[sites->last].next = index;
    sites->last = index;
}

/* What malloc of glibc leaves unused in a block of this size. */
static inline uint64_t predict_slack(uint64_t size) {
    uint64_t chunk = (size + 8 + 15) & ~UINT64_C(15);
    return (chunk < 32 ? 32 : chunk) - 8 - size;
}

static inline uint64_t predict_usable(const struct predict_site *site) {
    return site->size + site->slack;
}

static inline uint32_t predict_class(const struct predict_site *site) {
    return predict_usable(site) / 16 % PREDICT_CLASSES;
}

/* The slot of an own number; 0: none in this block. */
static inline uint64_t predict_slot_of(const struct predict *predict, uint64_t number) {
    uint64_t slot = number - predict->first_number + 1;
    return slot < predict->slot_count && predict->links[slot].newer != PREDICT_FREED ? slot : 0;
}

/* Own numbers that may be freed next; 0: there is none. */
static inline uint64_t predict_number(const struct predict *predict, uint64_t slot) {
    return slot != 0 ? predict->first_number + slot - 1 : 0;
}
static inline uint64_t predict_newest(const struct predict *predict) {
    return predict_number(predict, predict->links[0].older);
}
static inline uint64_t predict_newer(const struct predict *predict) {
    return predict->last_slot != 0 ? predict_number(predict, predict->last_link.newer)
                                   : predict->last + 1;
}
static inline uint64_t predict_older(const struct predict *predict) {
    return predict->last_slot != 0 ? predict_number(predict, predict->last_link.older)
                                   : predict->last - 1;
}

/* Takes the address at this depth off the stack; 0: there is none. */
static inline uint64_t predict_take(struct predict *predict, const struct predict_site *site,
                                    uint64_t depth) {
    uint32_t *link = &predict->top[predict_class(site)];
    uint32_t slot;
    for (; depth > 0 && *link != 0; depth--) {
        link = &predict->slots[*link].below;
    }
    slot = *link;
    *link = predict->slots[slot].below;
    return predict->slots[slot].address;
}

/* The allocator did not reuse: where it probably goes on, behind this block and its header. */
static inline void predict_advance(struct predict *predict, const struct predict_site *site,
                                   uint64_t address) {
    predict->frontier = (address + predict_usable(site) + 8) & PREDICT_ADDRESS_MASK;
}

static inline void predict_push(struct predict *predict, uint64_t slot) {
    struct predict_slot *freed = &predict->slots[slot];
    uint32_t *top = &predict->top[predict_class(&predict->sites.site[freed->site])];
    freed->below = *top;
    *top = (uint32_t)slot;
}

/* A free of an own block: out of the ring. Returns its slot, 0: not of this block. */
static inline uint64_t predict_free(struct predict *predict, uint64_t number) {
    uint64_t slot = predict_slot_of(predict, number);
    predict->last = number;
    predict->last_slot = slot;
    if (slot != 0) {
        struct predict_link freed = predict->links[slot];
        predict->links[freed.older].newer = freed.newer;
        predict->links[freed.newer].older = freed.older;
        predict->links[slot].newer = PREDICT_FREED;
        predict->last_link = freed;
    }
    return slot;
}

/* An allocation with the number `newest`, its address aside. Its slot, or 0: it gets none; *failed
 * if there was no memory for it. */
static inline uint64_t predict_append(struct predict *predict, bool *failed) {
    uint64_t slot = predict->newest - predict->first_number + 1;
    if (slot >= MEMTRACE_BLOCK_EVENTS_MOST) {
        return 0; /* numbers with large gaps: no slots for these */
    }
    if (slot >= predict->slot_capacity && predict_grow(predict, slot) != 0) {
        *failed = true;
        return 0;
    }
    while (predict->slot_count < slot) { /* a gap in the numbers */
        predict->links[predict->slot_count++].newer = PREDICT_FREED;
    }
    predict->slot_count = slot + 1;
    predict->links[slot] = (struct predict_link){.older = predict->links[0].older};
    predict->links[predict->links[0].older].newer = (uint32_t)slot;
    predict->links[0].older = (uint32_t)slot;
    return slot;
}

/* The same with its address. */
static inline void predict_alloc(struct predict *predict, uint32_t site, uint64_t address,
                                 bool *failed) {
    uint64_t slot = predict_append(predict, failed);
    if (slot != 0) {
        predict->slots[slot] = (struct predict_slot){.address = address, .site = site};
    }
}

#endif
