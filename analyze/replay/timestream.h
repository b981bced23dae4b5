/* SPDX-License-Identifier: MIT */
/*
 * timestream.h: one stream of a recording while timeorder.c merges them: its blocks, the one that
 * is open, the event that was read ahead. Nobody else's business.
 */
#ifndef ANALYZE_REPLAY_TIMESTREAM_H
#define ANALYZE_REPLAY_TIMESTREAM_H

#include "analyze/base/hotpath.h"
#include "analyze/replay/timeorder.h"

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

const struct memtrace_block_header *timestream_block(const struct timeorder *order,
                                                     struct timeorder_block place);

/* Opens the next block that can be read. False: there is none. */
bool timestream_open(struct timeorder *order, struct timeorder_stream *stream);

/* timestream_next() where the open block gave no event (decoded: what its decoder said; 0: none is
 * open), or one with a text. */
RARELY_DONE bool timestream_find(struct timeorder *order, struct timeorder_stream *stream,
                                 struct timeorder_event *into, int decoded);

/* The stream's next event, of whatever block. False: there is none. */
HOT_INLINE bool timestream_next(struct timeorder *order, struct timeorder_stream *stream,
                                struct timeorder_event *into) {
    int decoded = stream->is_open ? event_decoder_next(&stream->decoder, &into->event) : 0;
    if (decoded == 1 && into->event.kind != EVENT_MARK) {
        return true;
    }
    return timestream_find(order, stream, into, decoded);
}

/* Its next events of one block, as event_decoder_fill(). Their number; 0: there are none. */
HOT_INLINE size_t timestream_fill(struct timeorder *order, struct timeorder_stream *stream,
                                  const struct event_decoder_stop *stop,
                                  struct timeorder_event *into, size_t most) {
    size_t count = 0;
    int decoded = stream->is_open ? event_decoder_fill(&stream->decoder, stop, &into->event,
                                                       sizeof *into, most, &count)
                                  : 0;
    if (count == 0) {
        return timestream_find(order, stream, into, decoded) ? 1 : 0;
    }
    if (into[count - 1].event.kind == EVENT_MARK) {
        timestream_find(order, stream, &into[count - 1], 1);
    }
    return count;
}

/* The event that was read is for later. */
void timestream_put_back(struct timeorder_stream *stream, const struct timeorder_event *event);

#endif
