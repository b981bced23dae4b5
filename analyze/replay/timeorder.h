/* SPDX-License-Identifier: MIT */
/*
 * timeorder.h: the events of all streams of a recording in one order, by time. Each stream keeps
 * its own order. Between streams times decide, window by window: within one, whose length is about
 * what the clocks of threads are right to, a stream's events come together. But no free comes
 * before its allocation: the stream that allocated goes on first, as far as that.
 *
 * Called by analyze/window/wholemodel. Belongs to one thread. Memory: one block of each stream that
 * is at work at that time.
 */
#ifndef ANALYZE_REPLAY_TIMEORDER_H
#define ANALYZE_REPLAY_TIMEORDER_H

#include "analyze/base/job.h"
#include "analyze/model/texts.h"
#include "analyze/read/recording.h"
#include "analyze/read/varint.h"

/* One event, its window, its stream (a place below timeorder.stream_count) and whose that is. */
struct timeorder_event {
    struct event event; /* text: a string, the timeorder's until its end */
    uint64_t window;
    uint32_t stream;
    uint32_t thread;
};

/* A recording in one or several files, the parts in their order. */
struct timeorder_parts {
    const struct recording *const *items;
    size_t count; /* at least 1 */
};

/* A block of events: parts.items[part]->blocks[block]. */
struct timeorder_block {
    size_t part;
    size_t block;
};

/* One stream while they are merged: its blocks, the one that is open, the event that was read
 * ahead. */
struct timeorder_stream {
    size_t next_block; /* [next_block, end_block) of timeorder.blocks are not begun */
    size_t end_block;
    size_t first_block;
    size_t start_block;  /* where it began, now or by timeorder_seek */
    uint32_t start_skip; /* events of that block that were left out */
    uint32_t thread;
    uint64_t next_ns; /* of the next event; before a block is open: of the block */
    uint64_t newest;  /* number of the last allocation that was handed out */
    bool is_open;
    bool has_next;
    bool has_asked;  /* the next event's block was waited for, in vain or not */
    bool is_at_work; /* in order->waits */
    bool has_ended;
    struct timeorder_event next; /* read ahead: its turn comes later */
    struct event_decoder decoder;
    struct recording_buffer buffer;
};

struct timeorder {
    struct timeorder_parts parts;
    bool skips_addresses;  /* set it after the start where nobody asks for them */
    unsigned window_shift; /* a window is 2^window_shift ns long */
    struct timeorder_stream *streams;
    size_t stream_count;
    struct timeorder_turn *queue; /* a heap of streams that have events left, by time */
    size_t queue_size;
    struct timeorder_wait *waits; /* the last one's stream goes on; each before it waits for it */
    size_t depth;
    uint32_t *stream_of;            /* by thread id: its only stream; NO_STREAM: none or several */
    uint64_t *known;                /* by thread id: that stream's `newest`; none: UINT64_MAX */
    struct timeorder_block *blocks; /* each stream's together and in its order */
    size_t block_count;
    struct texts texts;
    struct timeorder_edge { /* see timeorder_note_places */
        uint64_t time_ns;
        struct varint_writer place;
    } * edges;
    size_t edge_count;
    size_t next_edge;
    uint64_t stop_ns; /* events of windows from here on are left; UINT64_MAX: none */
    uint64_t window;
    uint64_t turn_ns; /* when the turn began: of its first event */
    uint64_t damaged; /* blocks that could not be read to their end */
    bool no_memory;   /* to read a block: events are missing */
    uint64_t gaps;    /* places where a stream lacks something */
};

/* 0, or -1: out of memory. Its memory is not a job's, since another thread may go on with it. */
int timeorder_start(struct timeorder *order, struct timeorder_parts parts);
void timeorder_end(struct timeorder *order);
/* timeorder_start() in a job, which ends if there is no memory. */
static inline void timeorder_begin(struct timeorder *order, struct timeorder_parts parts) {
    if (timeorder_start(order, parts) != 0) {
        job_fail_memory();
    }
}

/*
 * Places: how far each stream is where the first window begins that is not before an edge, so that
 * events are read from there on as if all before had been read. Before the first timeorder_read():
 * notes the places of these edges (times, growing). Where events end before an edge, its place
 * stays empty. In a job.
 */
void timeorder_note_places(struct timeorder *order, const uint64_t *edges, size_t edge_count);
/* The place of an edge, once: all before its window was handed out. For a string of a job. */
void timeorder_take_place(struct timeorder *order, size_t edge, struct varint_writer *place);
/* Starts at a place (of the same parts, which may have more blocks and streams behind those that
 * were there; size 0: the beginning), up to windows that begin before stop_ns. 0, or -1: no memory,
 * or no such place. */
int timeorder_seek(struct timeorder *order, const void *place, size_t size, uint64_t stop_ns);
/* How far each stream is: after timeorder_read() has said that there is no more up to stop_ns. */
void timeorder_put_place(const struct timeorder *order, struct varint_writer *place);
/* What lies before the place in a stream: blocks [first, last) of timeorder.blocks, and so many
 * events of the block `last`. */
struct timeorder_before {
    size_t first_block;
    size_t last_block;
    size_t end_block; /* of the stream */
    uint32_t events;
};
struct timeorder_before timeorder_before(const struct timeorder *order, size_t stream);

static inline const struct memtrace_block_header *timeorder_header(const struct timeorder *order,
                                                                   struct timeorder_block place) {
    return &order->parts.items[place.part]->blocks[place.block].block;
}

/* Fills up to `capacity` events. Returns their number; 0: that was all. */
size_t timeorder_read(struct timeorder *order, struct timeorder_event *events, size_t capacity);

#endif
