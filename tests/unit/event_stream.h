/* SPDX-License-Identifier: MIT */
/*
 * event_stream.h: random events that a thread may have recorded, the same for the same seed.
 *
 * Included by unit tests and by what makes a corpus for the fuzz targets.
 */
#ifndef TESTS_UNIT_EVENT_STREAM_H
#define TESTS_UNIT_EVENT_STREAM_H

#include "analyze/read/event.h"

#include <string.h>

enum { STREAM_LIVE = 300 };

struct stream {
    uint64_t seed;
    uint64_t time_ns;
    uint64_t number; /* of the last allocation */
    uint64_t brk;
    uint32_t thread;
    unsigned live_count;
    struct {
        uint64_t number;
        uint64_t address;
    } live[STREAM_LIVE];
    uint64_t reusable[STREAM_LIVE];
    unsigned reusable_count;
    bool precise;
    bool addresses;
    bool wild; /* values from the whole range of every field, too */
};

static inline uint64_t stream_random(struct stream *stream) {
    stream->seed ^= stream->seed << 13;
    stream->seed ^= stream->seed >> 7;
    stream->seed ^= stream->seed << 17;
    return stream->seed;
}

static inline uint64_t stream_below(struct stream *stream, uint64_t end) {
    return stream_random(stream) % end;
}

/* Small numbers mostly; in a wild stream any. */
static inline uint64_t stream_value(struct stream *stream, uint64_t end) {
    if (stream->wild && stream_below(stream, 8) == 0) {
        return stream_random(stream) >> stream_below(stream, 64);
    }
    return stream_below(stream, end);
}

static inline struct stream stream_start(uint64_t seed, uint32_t thread, uint64_t first_number) {
    return (struct stream){.seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1,
                           .thread = thread,
                           .number = first_number - 1,
                           .brk = 0x555500001000,
                           .addresses = true};
}

static inline void stream_alloc(struct stream *stream, struct event *event) {
    static const uint16_t sizes[] = {0, 1, 16, 24, 24, 24, 40, 64, 100, 1000, 5000};
    event->kind = EVENT_ALLOC;
    event->context = (uint32_t)(4 + stream_below(stream, 20));
    event->size = stream_value(stream, 8) == 0 ? stream_value(stream, 100000)
                                               : sizes[stream_below(stream, 11)];
    event->slack = (uint32_t)(-(event->size + 8) & 15);
    if (stream_below(stream, 10) == 0) {
        event->slack = (uint32_t)stream_below(stream, MEMTRACE_SLACK_MOST + 1);
        event->flags = (uint8_t)stream_below(stream, 8);
        event->alignment = (uint8_t)stream_below(stream, 48);
        event->weight = stream_value(stream, 4);
    }
    stream->number += stream->wild && stream_below(stream, 50) == 0
                          ? 1 + (stream_random(stream) >> (24 + stream_below(stream, 40)))
                          : 1;
    event->block = (struct event_block){.number = stream->number, .thread = stream->thread};
    if (!stream->addresses) {
        return;
    }
    if (stream->reusable_count != 0 && stream_below(stream, 3) != 0) {
        event->address = stream->reusable[--stream->reusable_count];
    } else {
        event->address = stream->brk & ((UINT64_C(1) << 48) - 1);
        stream->brk += (event->size + event->slack) % 100000 + 8 + stream_value(stream, 2) * 16;
    }
}

static inline struct event_block stream_take(struct stream *stream) {
    unsigned from = stream->live_count;
    unsigned i = (unsigned)(stream_below(stream, 2) != 0 ? from - 1 : stream_below(stream, from));
    struct event_block block = {.number = stream->live[i].number, .thread = stream->thread};
    if (stream->reusable_count < STREAM_LIVE) {
        stream->reusable[stream->reusable_count++] = stream->live[i].address;
    }
    memmove(&stream->live[i], &stream->live[i + 1], (from - i - 1) * sizeof stream->live[0]);
    stream->live_count--;
    return block;
}

static inline void stream_keep(struct stream *stream, const struct event *event) {
    stream->live[stream->live_count].number = event->block.number;
    stream->live[stream->live_count++].address = event->address;
}

static inline void stream_rest(struct stream *stream, struct event *event) {
    static const char text[] = "begin of the third phase \xff";
    switch (stream_below(stream, 3)) {
    case 0:
        event->kind = EVENT_MAP;
        event->operation = (uint8_t)(1 + stream_below(stream, 4));
        event->protection = (uint8_t)stream_value(stream, 8);
        event->flags = (uint8_t)stream_random(stream);
        event->context = (uint32_t)stream_below(stream, 1 << 24);
        event->address = stream_random(stream) >> 16 & ~UINT64_C(4095);
        event->size = stream_value(stream, 1 << 20);
        event->old_address = stream_value(stream, 4096);
        event->old_size = stream_value(stream, 4096);
        break;
    case 1:
        event->kind = EVENT_MARK;
        event->operation = (uint8_t)(1 + stream_below(stream, 6));
        event->id = stream_value(stream, 5);
        event->text = text;
        event->text_size = (uint32_t)stream_below(stream, sizeof text);
        break;
    default:
        event->kind = EVENT_LOST;
        event->lost_allocs = stream_value(stream, 100);
        event->lost_frees = stream_value(stream, 100);
        break;
    }
}

/* The next event; its text is static. */
static inline void stream_next(struct stream *stream, struct event *event) {
    uint64_t what = stream_below(stream, 100);
    *event = (struct event){0};
    if (stream->precise) {
        stream->time_ns += stream_below(stream, 300);
    } else if (stream_below(stream, 20) == 0) {
        stream->time_ns = stream->wild ? stream_random(stream) >> 4 : stream->time_ns + 4194304;
    }
    event->time_ns = stream->time_ns;
    if (what < 2) {
        stream_rest(stream, event);
    } else if (what < 6) { /* another thread's, or one from before the block */
        event->kind = EVENT_FREE;
        event->block.thread = (uint32_t)stream_below(stream, 4);
        event->block.number = 1 + stream_value(stream, 5000);
    } else if (stream->live_count != 0 && (what < 50 || stream->live_count == STREAM_LIVE)) {
        event->kind = EVENT_FREE;
        event->block = stream_take(stream);
        event->context = (uint32_t)(stream_below(stream, 2) * stream_below(stream, 30));
    } else if (stream->live_count != 0 && what < 60) {
        struct event_block old = stream_take(stream);
        stream_alloc(stream, event);
        event->old = old;
        stream_keep(stream, event);
    } else {
        stream_alloc(stream, event);
        stream_keep(stream, event);
    }
}

#endif
