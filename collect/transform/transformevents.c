/* SPDX-License-Identifier: MIT */
/* transformevents.c: the events of a recording written anew, stream by stream. See transform.h. */
#include "collect/transform/transform.h"

#include "analyze/read/block.h"
#include "analyze/read/eventcode.h"

enum {
    BLOCK_EVENTS = 1 << 17, /* of a full block, as when recording */
    BLOCK_BYTES = 16 << 20,
};

struct events {
    struct timeorder_parts parts;
    struct recordfile *file;
    const struct transform_hooks *hooks;
    const struct transform_options *options;
    struct transform_result *result;
    struct error *error;
    struct timeorder order; /* for the order of the streams' blocks */
    struct event_encoder *encoder;
    struct recording_buffer buffer;
    struct memtrace_block_header span; /* what the encoder holds: from where to where of a stream */
    struct memtrace_block_header named; /* its stream and thread as they are in the new file */
    bool has_span;
    uint64_t total; /* events, for progress */
    uint64_t before;
};

static int no_memory(struct events *events) {
    return error_set(events->error, "out of memory while rewriting %s",
                     events->parts.items[0]->path);
}

/* Writes what the encoder holds, also if that is nothing: the stream's blocks must join. */
static int flush(struct events *events) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_EVENTS};
    size_t size;
    const void *payload;
    if (!events->has_span) {
        return 0;
    }
    events->has_span = false;
    events->result->kept += event_encoder_count(events->encoder);
    events->result->blocks_written++;
    payload = event_encoder_finish(events->encoder, &size, &block);
    if (payload == NULL) {
        return no_memory(events);
    }
    block.stream = events->named.stream;
    block.thread = events->named.thread;
    block.first_sequence = events->span.first_sequence;
    block.first_word = events->span.first_word;
    block.end_sequence = events->span.end_sequence;
    block.end_word = events->span.end_word;
    return recordfile_append(events->file, &block, payload, size, events->error);
}

/* Whether this block's events may stand in one block with those that the encoder holds. */
static bool joins(const struct events *events, const struct memtrace_block_header *block) {
    return events->has_span && events->span.stream == block->stream &&
           events->span.thread == block->thread && block_goes_on(&events->span, block) &&
           event_encoder_count(events->encoder) + block->items <= BLOCK_EVENTS &&
           event_encoder_bytes(events->encoder) + block->raw_size <= BLOCK_BYTES;
}

static int add_event(struct events *events, const struct memtrace_block_header *block,
                     struct event *event) {
    int result = 1;
    events->result->events++;
    if (events->hooks->event != NULL) {
        result = events->hooks->event(events->hooks->context, block, event);
    }
    if (result == 1) {
        result = event_encoder_add(events->encoder, event) == 0 ? 0 : -1;
    }
    return result < 0 ? no_memory(events) : 0;
}

/* Behind what can be read of a damaged block the stream has a gap. */
static void end_span(struct events *events, const struct memtrace_block_header *block,
                     bool is_whole) {
    events->span.end_sequence = is_whole ? block->end_sequence : block->first_sequence;
    events->span.end_word = is_whole ? block->end_word : block->first_word;
    events->result->damaged += !is_whole;
}

static int add_events(struct events *events, const struct memtrace_block_header *block) {
    struct event_decoder decoder = {0};
    struct event event;
    int found = event_decoder_start(&decoder, block, events->buffer.bytes, events->buffer.size);
    int result = 0;
    while (result == 0 && found == 0 && (found = event_decoder_next(&decoder, &event)) == 1) {
        result = add_event(events, block, &event);
        found = 0;
        if (result != 0) {
            break;
        }
    }
    event_decoder_end(&decoder);
    end_span(events, block, found == 0);
    return result;
}

static int copy_events(struct events *events, struct timeorder_block place) {
    const struct recording *recording = events->parts.items[place.part];
    const struct memtrace_block_header *block = &recording->blocks[place.block].block;
    events->result->blocks++;
    if (recording_payload(recording, place.block, &events->buffer, NULL) != 0) {
        events->result->damaged++;
        return 0; /* what follows does not join: the gap is seen */
    }
    if (!joins(events, block)) {
        if (flush(events) != 0) {
            return -1;
        }
        events->span = *block;
        events->named = *block;
        events->has_span = true;
        if (events->hooks->stream != NULL) {
            events->hooks->stream(events->hooks->context, &events->named);
        }
        event_encoder_start(events->encoder, events->named.thread, block->first_number);
    }
    return add_events(events, block);
}

static int copy_streams(struct events *events) {
    const struct transform_options *options = events->options;
    for (size_t i = 0; i < events->order.block_count; i++) {
        if (copy_events(events, events->order.blocks[i]) != 0) {
            return -1;
        }
        if (options->progress != NULL) {
            options->progress(options->context, events->result->events - events->before,
                              events->total);
        }
    }
    if (options->progress != NULL) {
        options->progress(options->context, events->total, events->total);
    }
    return flush(events);
}

static void count_events(struct events *events) {
    events->before = events->result->events;
    for (size_t i = 0; i < events->order.block_count; i++) {
        struct timeorder_block place = events->order.blocks[i];
        events->total += events->parts.items[place.part]->blocks[place.block].block.items;
    }
}

int transform_events(struct timeorder_parts parts, struct recordfile *file, uint32_t flags,
                     const struct transform_hooks *hooks, const struct transform_options *options,
                     struct transform_result *result, struct error *error) {
    struct events events = {.parts = parts,
                            .file = file,
                            .hooks = hooks,
                            .options = options,
                            .result = result,
                            .error = error};
    int status = -1;
    events.encoder = event_encoder_new(flags);
    if (events.encoder == NULL || timeorder_start(&events.order, parts) != 0) {
        no_memory(&events);
    } else {
        count_events(&events);
        status = copy_streams(&events);
    }
    timeorder_end(&events.order);
    event_encoder_free(events.encoder);
    recording_buffer_free(&events.buffer);
    return status;
}
