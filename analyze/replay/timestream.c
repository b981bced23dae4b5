/* SPDX-License-Identifier: MIT */
/* timestream.c: opens a stream's blocks one after the other. See timestream.h. */
#include "analyze/replay/timestream.h"

#include <string.h>

const struct memtrace_block_header *timestream_block(const struct timeorder *order,
                                                     struct timeorder_block place) {
    return &order->parts.items[place.part]->blocks[place.block].block;
}

static void close_block(struct timeorder_stream *stream) {
    event_decoder_end(&stream->decoder);
    stream->is_open = false;
}

/* Opens the next block that can be read. */
bool timestream_open(struct timeorder *order, struct timeorder_stream *stream) {
    while (stream->next_block < stream->end_block) {
        struct timeorder_block place = order->blocks[stream->next_block++];
        struct error error;
        stream->decoder = (struct event_decoder){0};
        if (recording_payload(order->parts.items[place.part], place.block, &stream->buffer,
                              &error) == 0 &&
            event_decoder_start(&stream->decoder, timestream_block(order, place),
                                stream->buffer.bytes, stream->buffer.size) == 0) {
            stream->decoder.skips_addresses = order->skips_addresses;
            stream->is_open = true;
            return true;
        }
        order->damaged++;
        event_decoder_end(&stream->decoder);
    }
    recording_buffer_free(&stream->buffer);
    stream->buffer = (struct recording_buffer){0};
    return false;
}

/* The block's bytes are gone by the time the event is looked at. */
static void keep_text(struct timeorder *order, struct event *event) {
    event->text = texts_keep(&order->texts, event->text, event->text_size);
    event->text_size = (uint32_t)strlen(event->text);
}

bool timestream_find(struct timeorder *order, struct timeorder_stream *stream,
                     struct timeorder_event *into, int decoded) {
    while (decoded != 1) {
        if (stream->is_open) {
            order->damaged += decoded < 0;
            close_block(stream);
        }
        if (!timestream_open(order, stream)) {
            return false;
        }
        decoded = event_decoder_next(&stream->decoder, &into->event);
    }
    if (into->event.kind == EVENT_MARK) {
        keep_text(order, &into->event);
    }
    return true;
}

/* The event that was read is for later. */
void timestream_put_back(struct timeorder_stream *stream, const struct timeorder_event *event) {
    stream->next = *event;
    stream->has_next = true;
    stream->next_ns = event->event.time_ns;
}
