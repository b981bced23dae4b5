/* SPDX-License-Identifier: MIT */
/* eventencode.c: events into the columns of a block. See eventcode.h. */
#include "analyze/read/eventcode.h"
#include "analyze/read/predict.h"
#include "analyze/read/varint.h"

#include <stdlib.h>

enum { LOOKUP_LEAST = 256 };

/* Finds sites by what they are: indices + 1 into sites, open addressing, 0: empty. */
struct lookup {
    uint32_t *index;
    uint32_t capacity; /* a power of two, at least twice the sites */
};

/* How deep below the top of its class's stack this address lies; -1: not among the upper ones. */
static int depth_of(const struct predict *predict, const struct predict_site *site,
                    uint64_t address) {
    uint32_t slot = predict->top[predict_class(site)];
    for (int depth = 0; slot != 0 && depth < PREDICT_DEPTH; depth++) {
        if (predict->slots[slot].address == address) {
            return depth;
        }
        slot = predict->slots[slot].below;
    }
    return -1;
}

struct event_encoder {
    struct predict predict;
    struct varint_writer column[COLUMNS];
    struct varint_writer payload;
    struct lookup sites;
    struct lookup places;
    uint64_t time_ns;
    uint64_t first_ns;
    uint64_t last_ns;
    size_t count;
    uint32_t allocs;
    uint32_t frees;
    uint32_t flags;
    bool failed; /* out of memory: this block is lost */
};

struct event_encoder *event_encoder_new(uint32_t flags) {
    struct event_encoder *encoder = calloc(1, sizeof *encoder);
    if (encoder != NULL) {
        encoder->flags = flags;
        event_encoder_start(encoder, 0, 1);
    }
    return encoder;
}

void event_encoder_free(struct event_encoder *encoder) {
    if (encoder == NULL) {
        return;
    }
    for (int i = 0; i < COLUMNS; i++) {
        free(encoder->column[i].bytes);
    }
    free(encoder->payload.bytes);
    free(encoder->sites.index);
    free(encoder->places.index);
    predict_end(&encoder->predict);
    free(encoder);
}

/* Empties it; a block of few sites must not pay for a former one of many. */
static void clear_lookup(struct lookup *lookup, const struct predict_sites *former) {
    while (lookup->capacity > LOOKUP_LEAST && lookup->capacity / 8 > former->count) {
        lookup->capacity /= 2;
    }
    if (lookup->capacity != 0) {
        memset(lookup->index, 0, lookup->capacity * sizeof *lookup->index);
    }
}

void event_encoder_start(struct event_encoder *encoder, uint32_t thread, uint64_t first_number) {
    for (int i = 0; i < COLUMNS; i++) {
        encoder->column[i].size = 0;
        encoder->column[i].failed = false;
    }
    clear_lookup(&encoder->sites, &encoder->predict.sites);
    clear_lookup(&encoder->places, &encoder->predict.places);
    encoder->failed = predict_start(&encoder->predict, thread, first_number) != 0;
    encoder->time_ns = encoder->first_ns = encoder->last_ns = 0;
    encoder->count = 0;
    encoder->allocs = encoder->frees = 0;
}

static bool same_site(const struct predict_site *a, const struct predict_site *b) {
    return a->context == b->context && a->size == b->size && a->slack == b->slack &&
           a->flags == b->flags && a->alignment == b->alignment && a->weight == b->weight;
}

static uint32_t *find_site(const struct lookup *lookup, const struct predict_sites *sites,
                           const struct predict_site *wanted) {
    uint64_t hash = wanted->context * UINT64_C(0x9e3779b97f4a7c15) ^ wanted->size;
    hash = (hash ^ hash >> 32 ^ wanted->slack) * UINT64_C(0xd6e8feb86659fd93);
    for (uint32_t i = (uint32_t)(hash >> 32);; i++) {
        uint32_t *index = &lookup->index[i & (lookup->capacity - 1)];
        if (*index == 0 || same_site(&sites->site[*index - 1], wanted)) {
            return index;
        }
    }
}

static int grow_lookup(struct lookup *lookup, const struct predict_sites *sites) {
    struct lookup grown = {.capacity = lookup->capacity != 0 ? lookup->capacity * 2 : LOOKUP_LEAST};
    grown.index = calloc(grown.capacity, sizeof *grown.index);
    if (grown.index == NULL) {
        return -1;
    }
    for (uint32_t i = 0; i < sites->count; i++) {
        *find_site(&grown, sites, &sites->site[i]) = i + 1;
    }
    free(lookup->index);
    *lookup = grown;
    return 0;
}

/* Which site of this block it is, a new one if need be. */
static enum op_site use_site(struct event_encoder *encoder, struct predict_sites *sites,
                             struct lookup *lookup, const struct predict_site *site,
                             uint32_t *index) {
    enum op_site how = SITE_KNOWN;
    uint32_t *found;
    if (sites->count != 0) {
        *index = predict_next_site(sites);
        if (same_site(&sites->site[*index], site)) {
            predict_use_site(sites, *index);
            return SITE_EXPECTED;
        }
    }
    if (sites->count * 2 >= lookup->capacity && grow_lookup(lookup, sites) != 0) {
        encoder->failed = true;
        return SITE_NONE;
    }
    found = find_site(lookup, sites, site);
    if (*found == 0) {
        int64_t added = predict_add_site(sites, site);
        if (added < 0) {
            encoder->failed = true;
            return SITE_NONE;
        }
        *found = (uint32_t)added + 1;
        how = SITE_NEW;
    }
    *index = *found - 1;
    predict_use_site(sites, *index);
    return how;
}

static void column_put_signed(struct varint_writer *column, uint64_t difference) {
    varint_put(column, varint_zigzag(difference));
}

/* The low byte into a column, the rest into the one behind it. */
static void put_split(struct event_encoder *encoder, enum column column, uint64_t value) {
    varint_put_byte(&encoder->column[column], (unsigned char)value);
    varint_put(&encoder->column[column + 1], value >> 8);
}

static void put_new_context(struct varint_writer *column, const struct predict_sites *sites,
                            uint32_t index) {
    uint32_t before = index != 0 ? sites->site[index - 1].context : 0;
    column_put_signed(column, (uint64_t)sites->site[index].context - before);
}

static void put_new_site(struct event_encoder *encoder, uint32_t index) {
    const struct predict_site *site = &encoder->predict.sites.site[index];
    struct varint_writer *shapes = &encoder->column[COLUMN_SHAPES];
    uint64_t slack = varint_zigzag(site->slack - predict_slack(site->size));
    bool special = site->flags != 0 || site->alignment != 0 || site->weight != 0;
    put_new_context(&encoder->column[COLUMN_CONTEXTS], &encoder->predict.sites, index);
    varint_put(&encoder->column[COLUMN_SIZES], site->size);
    varint_put(shapes, slack << 1 | special);
    if (special) {
        varint_put_byte(shapes, site->flags);
        varint_put_byte(shapes, site->alignment);
        varint_put(shapes, site->weight);
    }
}

/* How the allocation's address is told, and tells it. old_address: of the block that a realloc
 * ended, if that is of this file block; else 0. */
static enum op_address encoder_put_address(struct event_encoder *encoder,
                                           const struct predict_site *site, uint64_t address,
                                           uint64_t old_address) {
    struct predict *predict = &encoder->predict;
    enum op_address how = ADDRESS_FRONTIER;
    int depth;
    if (address == 0) {
        return ADDRESS_NONE;
    }
    if (address == old_address) {
        return ADDRESS_SAME;
    }
    depth = depth_of(predict, site, address);
    if (depth >= 0) {
        predict_take(predict, site, (unsigned)depth);
        if (depth > 0) {
            varint_put(&encoder->column[COLUMN_ADDRESSES], (unsigned)depth);
        }
        return depth > 0 ? ADDRESS_BELOW : ADDRESS_REUSED;
    }
    if (address != predict->frontier) {
        /* Addresses have 48 bits, and so have their differences, the uppermost one for the sign. */
        uint64_t difference = (uint64_t)((int64_t)((address - predict->frontier) << 16) >> 16);
        varint_put(&encoder->column[COLUMN_ADDRESSES],
                   difference % 16 == 0 ? varint_zigzag((uint64_t)((int64_t)difference / 16)) << 1
                                        : varint_zigzag(difference) << 1 | 1);
        how = ADDRESS_DELTA;
    }
    predict_advance(predict, site, address);
    return how;
}

/* Which of two numbers takes fewer bytes decides, not which is smaller: a column of numbers of one
 * sort packs better than the lowest of both. */
static unsigned varint_length(uint64_t value) {
    return value < 0x80 ? 1 : (unsigned)(70 - __builtin_clzll(value)) / 7;
}

static enum op_block put_block(struct event_encoder *encoder, const struct event_block *block) {
    struct predict *predict = &encoder->predict;
    uint64_t number = block->number;
    uint64_t back = predict->newest - number;
    uint64_t delta = varint_zigzag(number - predict->last);
    if (block->thread != predict->thread) {
        uint64_t *last = &predict->foreign[block->thread % PREDICT_THREADS];
        varint_put(&encoder->column[COLUMN_OWNERS], block->thread);
        put_split(encoder, COLUMN_BLOCKS, varint_zigzag(number - *last));
        *last = number;
        return BLOCK_FOREIGN;
    }
    if (number == predict_newest(predict)) {
        return BLOCK_NEWEST;
    }
    if (number == predict_newer(predict)) {
        return BLOCK_NEWER;
    }
    if (number == predict_older(predict)) {
        return BLOCK_OLDER;
    }
    if (varint_length(back) <= varint_length(delta)) {
        put_split(encoder, COLUMN_BLOCKS, back);
        return BLOCK_BACK;
    }
    put_split(encoder, COLUMN_BLOCKS, delta);
    return BLOCK_DELTA;
}

/* Names the block that ends; its bits of an op and, if it is of this block, its slot. */
static unsigned end_block(struct event_encoder *encoder, const struct event_block *block,
                          uint64_t *slot) {
    enum op_block how = put_block(encoder, block);
    *slot = how != BLOCK_FOREIGN ? predict_free(&encoder->predict, block->number) : 0;
    encoder->frees++;
    return OP_FREE | (unsigned)how << OP_BLOCK_SHIFT;
}

static unsigned encoder_put_place(struct event_encoder *encoder, uint32_t context) {
    struct predict_sites *places = &encoder->predict.places;
    struct predict_site place = {.context = context};
    uint32_t index = 0;
    enum op_site how = SITE_NONE;
    if (context != 0) {
        how = use_site(encoder, places, &encoder->places, &place, &index);
    }
    if (how == SITE_KNOWN) {
        varint_put(&encoder->column[COLUMN_PLACES], index);
    } else if (how == SITE_NEW) {
        put_new_context(&encoder->column[COLUMN_PLACES], places, index);
    }
    return (unsigned)how << OP_PLACE_SHIFT;
}

static void put_op(struct event_encoder *encoder, unsigned op) {
    varint_put_byte(&encoder->column[COLUMN_OPS], (unsigned char)op);
}

static void encoder_add_free(struct event_encoder *encoder, const struct event *event,
                             unsigned time) {
    uint64_t slot;
    unsigned op = end_block(encoder, &event->block, &slot);
    if (slot != 0) {
        predict_push(&encoder->predict, slot);
    }
    put_op(encoder, op | encoder_put_place(encoder, event->context) | time);
}

static void encoder_add_alloc(struct event_encoder *encoder, const struct event *event,
                              unsigned time) {
    struct predict *predict = &encoder->predict;
    struct predict_site site = {.context = event->context,
                                .size = event->size,
                                .slack = event->slack,
                                .flags = event->flags,
                                .alignment = event->alignment,
                                .weight = event->weight};
    uint64_t address = encoder->flags & MEMTRACE_RECORDING_NO_ADDRESSES ? 0 : event->address;
    uint64_t old_address = 0;
    uint64_t old_slot = 0;
    uint32_t index = 0;
    unsigned old_op = 0;
    unsigned op = event->old.number != 0 ? OP_REALLOC : OP_ALLOC;
    enum op_site how;
    if (event->block.number != predict->newest + 1) {
        put_op(encoder, OP_REST | REST_NUMBERS << 2);
        varint_put(&encoder->column[COLUMN_REST], event->block.number - predict->newest - 1);
        predict->newest = event->block.number - 1;
    }
    if (op == OP_REALLOC) {
        old_op = end_block(encoder, &event->old, &old_slot);
        old_address = old_slot != 0 ? predict->slots[old_slot].address : 0;
    }
    predict->newest++;
    how = use_site(encoder, &predict->sites, &encoder->sites, &site, &index);
    if (how == SITE_KNOWN) {
        put_split(encoder, COLUMN_SITES, index);
    } else if (how == SITE_NEW) {
        put_new_site(encoder, index);
    }
    op |= (unsigned)how << OP_SITE_SHIFT;
    op |= (unsigned)encoder_put_address(encoder, &site, address, old_address) << OP_ADDRESS_SHIFT;
    if (old_slot != 0 && address != old_address) {
        predict_push(predict, old_slot);
    }
    put_op(encoder, op | time);
    if ((op & OP_KIND) == OP_REALLOC) {
        put_op(encoder, old_op);
    }
    encoder->allocs++;
    predict_alloc(predict, index, address, &encoder->failed);
}

static void encoder_add_rest(struct event_encoder *encoder, const struct event *event,
                             unsigned time) {
    struct varint_writer *rest = &encoder->column[COLUMN_REST];
    unsigned what = REST_LOST;
    if (event->kind == EVENT_MAP) {
        what = REST_MAP;
        varint_put_byte(rest, event->operation);
        varint_put_byte(rest, event->protection);
        varint_put_byte(rest, event->flags);
        varint_put(rest, event->context);
        varint_put(rest, event->address);
        varint_put(rest, event->size);
        varint_put(rest, event->old_address);
        varint_put(rest, event->old_size);
    } else if (event->kind == EVENT_MARK) {
        what = REST_MARK;
        varint_put_byte(rest, event->operation);
        varint_put(rest, event->id);
        varint_put(rest, event->text_size);
        varint_put_bytes(rest, event->text, event->text_size);
    } else {
        varint_put(rest, event->lost_allocs);
        varint_put(rest, event->lost_frees);
    }
    put_op(encoder, OP_REST | what << 2 | time);
}

/* The bit of an op that tells whether the time has changed. */
static unsigned encoder_put_time(struct event_encoder *encoder, uint64_t time_ns) {
    uint64_t difference = time_ns - encoder->time_ns;
    encoder->time_ns = time_ns;
    if (encoder->count == 0) {
        encoder->first_ns = encoder->last_ns = time_ns;
        varint_put(&encoder->column[COLUMN_TIMES], time_ns);
        return 0;
    }
    if (difference == 0) {
        return 0;
    }
    encoder->first_ns = time_ns < encoder->first_ns ? time_ns : encoder->first_ns;
    encoder->last_ns = time_ns > encoder->last_ns ? time_ns : encoder->last_ns;
    column_put_signed(&encoder->column[COLUMN_TIMES], difference);
    return OP_TIME;
}

int event_encoder_add(struct event_encoder *encoder, const struct event *event) {
    unsigned time;
    if (encoder->count == MEMTRACE_BLOCK_EVENTS_MOST) {
        return -1;
    }
    time = encoder_put_time(encoder, event->time_ns);
    switch (event->kind) {
    case EVENT_ALLOC:
        encoder_add_alloc(encoder, event, time);
        break;
    case EVENT_FREE:
        encoder_add_free(encoder, event, time);
        break;
    default:
        encoder_add_rest(encoder, event, time);
        break;
    }
    encoder->count++;
    return encoder->failed ? -1 : 0;
}

size_t event_encoder_count(const struct event_encoder *encoder) {
    return encoder->count;
}

size_t event_encoder_bytes(const struct event_encoder *encoder) {
    size_t size = COLUMNS * sizeof(uint32_t);
    for (int i = 0; i < COLUMNS; i++) {
        size += encoder->column[i].size;
    }
    return size;
}

const void *event_encoder_finish(struct event_encoder *encoder, size_t *size,
                                 struct memtrace_block_header *block) {
    struct varint_writer *payload = &encoder->payload;
    *size = event_encoder_bytes(encoder);
    payload->size = 0;
    payload->failed = false;
    varint_join(encoder->column, COLUMNS, payload);
    block->items = (uint32_t)encoder->count;
    block->allocs = encoder->allocs;
    block->frees = encoder->frees;
    block->first_number = encoder->predict.first_number;
    block->first_ns = encoder->first_ns;
    block->last_ns = encoder->last_ns;
    block->thread = encoder->predict.thread;
    return encoder->failed || payload->failed ? NULL : payload->bytes;
}
