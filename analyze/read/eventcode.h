/* SPDX-License-Identifier: MIT */
/*
 * eventcode.h: the bytes of an events block (memtrace/recording.h): columns, one for each field, so
 * that like stands beside like and a general compressor finds it. docs/format.md tells the columns.
 *
 * Called by collect (encoder) and analyze/read (decoder). An encoder or decoder belongs to one
 * thread. Each block starts from nothing: any block can be decoded alone.
 */
#ifndef ANALYZE_READ_EVENTCODE_H
#define ANALYZE_READ_EVENTCODE_H

#include "analyze/read/event.h"

#include <stddef.h>

struct event_encoder;

/* NULL: out of memory. flags: MEMTRACE_RECORDING_*. */
struct event_encoder *event_encoder_new(uint32_t flags);
void event_encoder_free(struct event_encoder *encoder); /* NULL is allowed */

/* Starts a block of events of this thread whose first allocation has this number. */
void event_encoder_start(struct event_encoder *encoder, uint32_t thread, uint64_t first_number);
/* Appends an event of the thread. Allocations must be numbered upwards. 0, or -1: out of memory, or
 * the block has MEMTRACE_BLOCK_EVENTS_MOST events. */
int event_encoder_add(struct event_encoder *encoder, const struct event *event);
/* Events and (a bound of the) payload bytes so far. */
size_t event_encoder_count(const struct event_encoder *encoder);
size_t event_encoder_bytes(const struct event_encoder *encoder);
/* The payload, not compressed yet; fills items, allocs, frees, first_number, first_ns, last_ns and
 * thread of *block. The bytes are the encoder's, until the next start. NULL: out of memory. */
const void *event_encoder_finish(struct event_encoder *encoder, size_t *size,
                                 struct memtrace_block_header *block);

struct event_decoder {
    const unsigned char *payload;
    size_t size;
    void *state;          /* eventcode.c's */
    bool skips_addresses; /* set after the start: allocations have address 0, which is faster */
    bool no_memory;       /* it failed for want of it */
    char error[96];       /* empty, or what does not add up */
};

/* Reads a payload, which must outlive the decoder. 0, or -1: damaged (error says how) or no memory.
 */
int event_decoder_start(struct event_decoder *decoder, const struct memtrace_block_header *block,
                        const void *payload, size_t size);
/* Fills *event; its text points into the payload. 1; 0: at the end; -1: damaged. Never reads
 * outside the payload, whatever it holds. */
int event_decoder_next(struct event_decoder *decoder, struct event *event);
/* Several events that follow each other, `stride` bytes apart: `most` at most, and none behind the
 * first that asks for a look: one that is neither an allocation nor a free, that is later than
 * last_ns, or that ends a block of another thread with a number above known[thread] (of each
 * thread, below 1 << MEMTRACE_THREAD_BITS). *count: how many were filled. Returns 1; 0 or -1, as
 * event_decoder_next() does, where it stopped because there is no further event. */
struct event_decoder_stop {
    uint64_t last_ns;
    const uint64_t *known;
};
int event_decoder_fill(struct event_decoder *decoder, const struct event_decoder_stop *stop,
                       struct event *events, size_t stride, size_t most, size_t *count);
/* How many events are still to come. */
uint32_t event_decoder_left(const struct event_decoder *decoder);
void event_decoder_end(struct event_decoder *decoder);

#endif
