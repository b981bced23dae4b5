/* SPDX-License-Identifier: MIT */
/* part.c: a slice's events, and the beginnings of what ends in it. See part.h. */
#include "analyze/window/part.h"

#include <stdlib.h>

/* ---- What ends in the slice and began before ---- */

static int add_before(struct part *part, struct event_block name) {
    enum { FIRST = 1024 };
    if (part->before_count == part->before_capacity) {
        size_t capacity = part->before_capacity != 0 ? part->before_capacity * 2 : FIRST;
        struct part_block *grown = reallocarray(part->before, capacity, sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        part->before = grown;
        part->before_capacity = capacity;
    }
    part->before[part->before_count++] = (struct part_block){.name = name};
    return 0;
}

static int survey_event(struct part *part, struct pairing *pairing, const struct event *event) {
    const struct pairing_block any = {0};
    struct event_block ends = {0};
    struct pairing_block block;
    struct pairing_end end;
    if (event->kind == EVENT_FREE || event->kind == EVENT_ALLOC) {
        ends = event->kind == EVENT_FREE ? event->block : event->old;
    }
    if (ends.number != 0 && !pairing_take(pairing, ends, &block) && add_before(part, ends) != 0) {
        return -1;
    }
    return event->kind == EVENT_ALLOC && pairing_add(pairing, event->block, &any, &end) < 0 ? -1
                                                                                            : 0;
}

static int survey(struct part *part, struct timeorder *order) {
    enum { EVENTS = 256 };
    struct timeorder_event *events = calloc(EVENTS, sizeof *events);
    struct pairing *pairing = pairing_new();
    int result = events != NULL && pairing != NULL ? 0 : -1;
    size_t count;
    while (result == 0 && (count = timeorder_read(order, events, EVENTS)) != 0) {
        for (size_t i = 0; i < count && result == 0; i++) {
            result = survey_event(part, pairing, &events[i].event);
        }
    }
    pairing_free(pairing);
    free(events);
    return result;
}

static int compare(struct event_block left, struct event_block right) {
    if (left.thread != right.thread) {
        return left.thread < right.thread ? -1 : 1;
    }
    return (left.number > right.number) - (left.number < right.number);
}

static int by_name(const void *left, const void *right) {
    const struct part_block *a = left;
    const struct part_block *b = right;
    return compare(a->name, b->name);
}

/* The first one that is not before this name. */
static size_t first_from(const struct part *part, struct event_block name) {
    size_t low = 0;
    size_t high = part->before_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(part->before[middle].name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- Where they began ---- */

static void take_beginning(struct part *part, const struct event *event) {
    size_t at = first_from(part, event->block);
    if (at < part->before_count && compare(part->before[at].name, event->block) == 0) {
        part->before[at].is_known = true;
        part->before[at].born_ns = event->time_ns;
        part->before[at].block =
            (struct pairing_block){.size = event->size,
                                   .weight = event->weight,
                                   .context = event->context,
                                   .tick = (uint32_t)(event->time_ns >> MEMTRACE_TICK_SHIFT)};
    }
}

/* The block's first `most` events. A damaged one has as many as the replay found in it. */
static void read_beginnings(struct part *part, struct timeorder_block place, uint32_t most,
                            struct recording_buffer *buffer) {
    const struct recording *recording = part->parts.items[place.part];
    struct event_decoder decoder = {0};
    struct event event;
    if (recording_payload(recording, place.block, buffer, NULL) == 0 &&
        event_decoder_start(&decoder, &recording->blocks[place.block].block, buffer->bytes,
                            buffer->size) == 0) {
        for (uint32_t i = 0; i < most && event_decoder_next(&decoder, &event) == 1; i++) {
            if (event.kind == EVENT_ALLOC) {
                take_beginning(part, &event);
            }
        }
    }
    event_decoder_end(&decoder);
}

static const struct memtrace_block_header *header_of(const struct part *part,
                                                     struct timeorder_block place) {
    return &part->parts.items[place.part]->blocks[place.block].block;
}

/* Whether some block that is looked for has a number of this one's events. */
static bool is_wanted(const struct part *part, const struct timeorder *order, size_t at,
                      size_t end) {
    const struct memtrace_block_header *block = header_of(part, order->blocks[at]);
    uint64_t next = at + 1 < end ? header_of(part, order->blocks[at + 1])->first_number : 0;
    struct event_block first = {.thread = block->thread, .number = block->first_number};
    size_t found = first_from(part, first);
    return block->allocs != 0 && found < part->before_count &&
           part->before[found].name.thread == block->thread &&
           (next == 0 || part->before[found].name.number < next);
}

static void find_beginnings(struct part *part, const struct timeorder *order) {
    struct recording_buffer buffer = {0};
    for (size_t i = 0; i < order->stream_count; i++) {
        struct timeorder_before before = timeorder_before(order, i);
        for (size_t at = before.first_block; at <= before.last_block && at < before.end_block;
             at++) {
            uint32_t most = at < before.last_block ? UINT32_MAX : before.events;
            if (most != 0 && is_wanted(part, order, at, before.end_block)) {
                read_beginnings(part, order->blocks[at], most, &buffer);
            }
        }
    }
    recording_buffer_free(&buffer);
}

/* ---- The slice ---- */

int part_open(struct part *part, const struct model *whole, struct timeorder_parts parts,
              size_t at) {
    const struct index *index = whole->index;
    struct timeorder order;
    int result;
    *part = (struct part){.whole = whole, .parts = parts, .entry = &index->entries[at]};
    part->stop_ns = at + 1 < index->count ? index->entries[at + 1].start_ns : UINT64_MAX;
    if (timeorder_start(&order, parts) != 0) {
        return -1;
    }
    order.skips_addresses = true;
    result =
        timeorder_seek(&order, part->entry->place.bytes, part->entry->place.size, part->stop_ns);
    if (result == 0 && at != 0) {
        result = survey(part, &order);
        if (part->before_count != 0) {
            qsort(part->before, part->before_count, sizeof *part->before, by_name);
        }
        find_beginnings(part, &order);
    }
    timeorder_end(&order);
    return result;
}

void part_close(struct part *part) {
    free(part->before);
    *part = (struct part){0};
}

static int restore(const struct part *part, struct pass *pass) {
    int result = index_restore(part->entry, pass);
    for (size_t i = 0; i < part->before_count && result == 0; i++) {
        struct part_block before = part->before[i];
        before.block.context = pass_context(pass, before.block.context);
        if (before.is_known) {
            result = pass_know_block(pass, before.name, before.block, before.born_ns);
        }
    }
    return result;
}

int part_sum(const struct part *part, uint64_t from_ns, uint64_t to_ns, struct slice *slice) {
    const struct pass_visitor nobody = {0};
    struct timeorder order;
    struct pass pass = {0};
    int result = -1;
    *slice = (struct slice){0};
    if (timeorder_start(&order, part->parts) != 0) {
        return -1;
    }
    order.skips_addresses = true;
    if (pass_start(&pass, part->whole, order.stream_count, from_ns, to_ns) == 0 &&
        restore(part, &pass) == 0 &&
        timeorder_seek(&order, part->entry->place.bytes, part->entry->place.size, part->stop_ns) ==
            0 &&
        pass_run(&pass, &order, &nobody, NULL, 0) == 0) {
        result = pass_cut(&pass, slice);
    }
    pass_free(&pass);
    timeorder_end(&order);
    return result;
}
