/* SPDX-License-Identifier: MIT */
/* eventdecode.c: the columns of a block into events. See eventcode.h. */
#include "analyze/base/hotpath.h"
#include "analyze/read/eventcode.h"
#include "analyze/read/predict.h"
#include "analyze/read/varint.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct state {
    struct predict predict;
    struct varint_reader column[COLUMNS];
    uint64_t time_ns;
    uint32_t items; /* still to come */
    bool no_memory;
    bool damaged; /* what was read cannot be */
};

/* The last one that ended: its memory serves the next block, which halves the time a block takes.
 */
static _Atomic(struct state *) spare;

RARELY_DONE static int decoder_fail(struct event_decoder *decoder, const char *what) {
    snprintf(decoder->error, sizeof decoder->error, "%s", what);
    return -1;
}

RARELY_DONE static int decoder_fail_memory(struct event_decoder *decoder) {
    decoder->no_memory = true;
    return decoder_fail(decoder, "out of memory");
}

int event_decoder_start(struct event_decoder *decoder, const struct memtrace_block_header *block,
                        const void *payload, size_t size) {
    struct state *state = atomic_exchange(&spare, NULL);
    if (state == NULL) {
        state = calloc(1, sizeof *state);
    } else {
        state->damaged = state->no_memory = false;
    }
    *decoder = (struct event_decoder){.payload = payload, .size = size, .state = state};
    if (state == NULL || predict_start(&state->predict, block->thread, block->first_number) != 0) {
        decoder_fail_memory(decoder);
    } else if (varint_split(payload, size, state->column, COLUMNS, &state->damaged) != 0) {
        decoder_fail(decoder, "the sizes of its columns do not add up");
    } else if (block->items > MEMTRACE_BLOCK_EVENTS_MOST) {
        decoder_fail(decoder, "it has more events than a block can have");
    } else {
        state->items = block->items;
        state->time_ns = block->items != 0 ? varint_get(&state->column[COLUMN_TIMES]) : 0;
        return 0;
    }
    event_decoder_end(decoder);
    return -1;
}

void event_decoder_end(struct event_decoder *decoder) {
    struct state *state = decoder->state;
    struct state *other = state != NULL ? atomic_exchange(&spare, state) : NULL;
    if (other != NULL) {
        predict_end(&other->predict);
        free(other);
    }
    decoder->state = NULL;
}

HOT_INLINE uint64_t get(struct state *state, enum column column) {
    return varint_get(&state->column[column]);
}

HOT_INLINE uint64_t get_signed(struct state *state, enum column column) {
    return varint_unzigzag(get(state, column));
}

HOT_INLINE uint64_t get_split(struct state *state, enum column column) {
    uint64_t low = varint_get_byte(&state->column[column]);
    return get(state, column + 1) << 8 | low;
}

static uint32_t get_context(struct state *state, const struct predict_sites *sites,
                            enum column column) {
    uint32_t before = sites->count != 0 ? sites->site[sites->count - 1].context : 0;
    return before + (uint32_t)get_signed(state, column);
}

static void get_new_shape(struct state *state, struct predict_site *site) {
    struct varint_reader *shapes = &state->column[COLUMN_SHAPES];
    uint64_t shape = varint_get(shapes);
    site->context = get_context(state, &state->predict.sites, COLUMN_CONTEXTS);
    site->size = get(state, COLUMN_SIZES);
    site->slack = (uint32_t)(varint_unzigzag(shape >> 1) + predict_slack(site->size));
    if (shape & 1) {
        site->flags = varint_get_byte(shapes);
        site->alignment = varint_get_byte(shapes);
        site->weight = varint_get(shapes);
    }
}

/* The index of a site that was read from its columns. */
RARELY_DONE static uint64_t get_new_site(struct state *state, struct predict_sites *sites,
                                         bool place) {
    struct predict_site site = {0};
    int64_t added;
    if (place) {
        site.context = get_context(state, sites, COLUMN_PLACES);
    } else {
        get_new_shape(state, &site);
    }
    added = predict_add_site(sites, &site);
    state->no_memory |= added < 0;
    return (uint64_t)added;
}

/* The index of the site that an op names. */
HOT_INLINE uint32_t get_site(struct state *state, struct predict_sites *sites, enum op_site how,
                             bool place) {
    uint64_t index = 0;
    if (how == SITE_NEW) {
        index = get_new_site(state, sites, place);
    } else if (how == SITE_KNOWN) {
        index = place ? get(state, COLUMN_PLACES) : get_split(state, COLUMN_SITES);
    } else if (sites->count != 0) {
        index = predict_next_site(sites);
    }
    if (index >= sites->count) {
        state->damaged = true;
        return 0;
    }
    predict_use_site(sites, (uint32_t)index);
    return (uint32_t)index;
}

static struct event_block get_foreign(struct state *state) {
    uint64_t owner = get(state, COLUMN_OWNERS);
    uint64_t *last = &state->predict.foreign[owner % PREDICT_THREADS];
    state->damaged |= owner >= PREDICT_THREADS;
    *last += varint_unzigzag(get_split(state, COLUMN_BLOCKS));
    return (struct event_block){.number = *last, .thread = (uint32_t)owner};
}

/* The block that this op ends; *slot: its own, 0: not of this block. */
HOT_INLINE struct event_block end_block(struct state *state, unsigned op, uint64_t *slot) {
    struct predict *predict = &state->predict;
    struct event_block block = {.thread = predict->thread};
    switch (op >> OP_BLOCK_SHIFT & 7) {
    case BLOCK_NEWEST:
        block.number = predict_newest(predict);
        break;
    case BLOCK_NEWER:
        block.number = predict_newer(predict);
        break;
    case BLOCK_OLDER:
        block.number = predict_older(predict);
        break;
    case BLOCK_BACK:
        block.number = predict->newest - get_split(state, COLUMN_BLOCKS);
        break;
    case BLOCK_DELTA:
        block.number = predict->last + varint_unzigzag(get_split(state, COLUMN_BLOCKS));
        break;
    case BLOCK_FOREIGN:
        *slot = 0;
        return get_foreign(state);
    default:
        state->damaged = true;
        break;
    }
    *slot = predict_free(predict, block.number);
    return block;
}

static uint64_t get_address(struct state *state, enum op_address how,
                            const struct predict_site *site, uint64_t old_address) {
    struct predict *predict = &state->predict;
    uint64_t address = predict->frontier;
    if (how == ADDRESS_NONE) {
        return 0;
    }
    if (how == ADDRESS_SAME) {
        return old_address;
    }
    if (how == ADDRESS_REUSED || how == ADDRESS_BELOW) {
        uint64_t depth = how == ADDRESS_BELOW ? get(state, COLUMN_ADDRESSES) : 0;
        state->damaged |= depth >= PREDICT_DEPTH;
        return state->damaged ? 0 : predict_take(predict, site, depth);
    }
    state->damaged |= how > ADDRESS_SAME;
    if (how == ADDRESS_DELTA) {
        uint64_t value = get(state, COLUMN_ADDRESSES);
        address += varint_unzigzag(value >> 1) * (value & 1 ? 1 : 16);
        address &= PREDICT_ADDRESS_MASK;
    }
    predict_advance(predict, site, address);
    return address;
}

HOT_INLINE void get_alloc(struct state *state, unsigned op, bool skips_addresses,
                          struct event *event) {
    struct predict *predict = &state->predict;
    const struct predict_site *site;
    uint64_t old_address = 0;
    uint64_t old_slot = 0;
    uint32_t index;
    if ((op & OP_KIND) == OP_REALLOC) {
        unsigned old_op = varint_get_byte(&state->column[COLUMN_OPS]);
        event->old = end_block(state, old_op, &old_slot);
        state->damaged |= event->old.number == 0;
        old_address = old_slot != 0 && !skips_addresses ? predict->slots[old_slot].address : 0;
    }
    index = get_site(state, &predict->sites, op >> OP_SITE_SHIFT & 3, false);
    if (state->damaged || state->no_memory) {
        return;
    }
    site = &predict->sites.site[index];
    predict->newest++;
    event->kind = EVENT_ALLOC;
    event->block = (struct event_block){.number = predict->newest, .thread = predict->thread};
    event->context = site->context;
    event->size = site->size;
    event->slack = site->slack;
    event->flags = site->flags;
    event->alignment = site->alignment;
    event->weight = site->weight;
    if (skips_addresses) {
        predict_append(predict, &state->no_memory);
        return;
    }
    event->address = get_address(state, op >> OP_ADDRESS_SHIFT & 7, site, old_address);
    if (old_slot != 0 && event->address != old_address) {
        predict_push(predict, old_slot);
    }
    predict_alloc(predict, index, event->address, &state->no_memory);
}

HOT_INLINE void get_free(struct state *state, unsigned op, bool skips_addresses,
                         struct event *event) {
    enum op_site how = op >> OP_PLACE_SHIFT & 3;
    uint64_t slot;
    event->kind = EVENT_FREE;
    event->block = end_block(state, op, &slot);
    if (slot != 0 && !skips_addresses) {
        predict_push(&state->predict, slot);
    }
    if (how != SITE_NONE) {
        uint32_t index = get_site(state, &state->predict.places, how, true);
        if (!state->damaged) {
            event->context = state->predict.places.site[index].context;
        }
    }
}

RARELY_DONE static void get_rest(struct state *state, unsigned op, struct event *event) {
    struct varint_reader *rest = &state->column[COLUMN_REST];
    switch (op >> 2 & 31) {
    case REST_MAP:
        event->kind = EVENT_MAP;
        event->operation = varint_get_byte(rest);
        event->protection = varint_get_byte(rest);
        event->flags = varint_get_byte(rest);
        event->context = (uint32_t)varint_get(rest);
        event->address = varint_get(rest);
        event->size = varint_get(rest);
        event->old_address = varint_get(rest);
        event->old_size = varint_get(rest);
        break;
    case REST_MARK:
        event->kind = EVENT_MARK;
        event->operation = varint_get_byte(rest);
        event->id = varint_get(rest);
        event->text_size = (uint32_t)varint_get(rest);
        event->text = varint_get_bytes(rest, event->text_size);
        break;
    case REST_LOST:
        event->kind = EVENT_LOST;
        event->lost_allocs = varint_get(rest);
        event->lost_frees = varint_get(rest);
        break;
    default:
        state->damaged = true;
        break;
    }
}

uint32_t event_decoder_left(const struct event_decoder *decoder) {
    const struct state *state = decoder->state;
    return state->items;
}

static const struct event nothing; /* GCC copies it faster than it clears a struct */

HOT_INLINE int next_event(struct event_decoder *decoder, bool skips_addresses,
                          struct event *event) {
    struct state *state = decoder->state;
    unsigned op;
    if (state->items == 0) {
        return state->damaged || state->no_memory ? -1 : 0;
    }
    state->items--;
    *event = nothing;
    op = varint_get_byte(&state->column[COLUMN_OPS]);
    while (op == (OP_REST | REST_NUMBERS << 2)) { /* a gap */
        state->predict.newest += get(state, COLUMN_REST);
        op = varint_get_byte(&state->column[COLUMN_OPS]);
    }
    if (op & OP_TIME) {
        state->time_ns += get_signed(state, COLUMN_TIMES);
    }
    event->time_ns = state->time_ns;
    if ((op & OP_KIND) == OP_FREE) {
        get_free(state, op, skips_addresses, event);
    } else if ((op & OP_KIND) == OP_REST) {
        get_rest(state, op, event);
    } else {
        get_alloc(state, op, skips_addresses, event);
    }
    if (state->no_memory) {
        return decoder_fail_memory(decoder);
    }
    return state->damaged ? decoder_fail(decoder, "its events cannot be") : 1;
}

int event_decoder_next(struct event_decoder *decoder, struct event *event) {
    return decoder->skips_addresses ? next_event(decoder, true, event)
                                    : next_event(decoder, false, event);
}

/* Whether someone must look at the event before the next one is read. */
HOT_INLINE bool asks_for_look(const struct event_decoder_stop *stop, const struct event *event,
                              uint32_t thread) {
    struct event_block ended = event->kind == EVENT_FREE ? event->block : event->old;
    if (event->time_ns > stop->last_ns || event->kind > EVENT_FREE) {
        return true;
    }
    return ended.number != 0 && ended.thread != thread &&
           ended.number > stop->known[ended.thread % PREDICT_THREADS];
}

HOT_INLINE int fill(struct event_decoder *decoder, bool skips_addresses,
                    const struct event_decoder_stop *stop, struct event *event, size_t stride,
                    size_t most, size_t *count) {
    const struct state *state = decoder->state;
    uint32_t thread = state->predict.thread;
    for (*count = 0; *count < most; event = (struct event *)((char *)event + stride)) {
        int result = next_event(decoder, skips_addresses, event);
        if (result != 1) {
            return result;
        }
        ++*count;
        if (asks_for_look(stop, event, thread)) {
            break;
        }
    }
    return 1;
}

int event_decoder_fill(struct event_decoder *decoder, const struct event_decoder_stop *stop,
                       struct event *events, size_t stride, size_t most, size_t *count) {
    return decoder->skips_addresses ? fill(decoder, true, stop, events, stride, most, count)
                                    : fill(decoder, false, stop, events, stride, most, count);
}
