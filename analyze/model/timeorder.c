/* SPDX-License-Identifier: MIT */
/* timeorder.c: merges the streams of a recording by time. See timeorder.h. */
#include "analyze/model/timeorder.h"

#include <stdlib.h>
#include <string.h>

enum { PRECISE_SHIFT = 16 }; /* 65 us: a thread may be interrupted between clock and event */

struct timeorder_stream {
    size_t next_block; /* [next_block, end_block) of timeorder.blocks are not begun */
    size_t end_block;
    uint32_t thread;
    uint64_t next_ns; /* of the next event; before a block is open: of the block */
    bool is_open;
    bool has_next;
    struct timeorder_event next; /* read ahead: it belongs to a later window */
    struct event_decoder decoder;
    struct recording_buffer buffer;
};

/* ---- Which blocks belong to which stream ---- */

static const struct memtrace_block *block_at(const struct timeorder *order, size_t place) {
    return &order->recording->blocks[place].block;
}

static int by_stream(const void *left, const void *right, void *context) {
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    const struct memtrace_block *first = block_at(context, a);
    const struct memtrace_block *second = block_at(context, b);
    if (first->stream != second->stream) {
        return first->stream < second->stream ? -1 : 1;
    }
    if (first->first_sequence != second->first_sequence) {
        return first->first_sequence < second->first_sequence ? -1 : 1;
    }
    if (first->first_word != second->first_word) {
        return first->first_word < second->first_word ? -1 : 1;
    }
    return (a > b) - (a < b);
}

/* Whether `block` goes on where `before` (NULL: the stream's beginning) ended. A full chunk's last
 * word and the next one's first are the same place. */
static bool goes_on(const struct memtrace_block *before, const struct memtrace_block *block,
                    uint32_t part) {
    if (before == NULL) {
        return part != 0 || (block->first_sequence == 0 && block->first_word == 0);
    }
    return (block->first_sequence == before->end_sequence &&
            block->first_word == before->end_word) ||
           (block->first_sequence == before->end_sequence + 1 && block->first_word == 0);
}

/* Leaves out what a stream has twice, which no writer writes: a block that begins before the last
 * one ended. Counts the gaps. */
static size_t drop_repeated(struct timeorder *order, size_t count) {
    const struct memtrace_block *before = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct memtrace_block *block = block_at(order, order->blocks[i]);
        if (before != NULL && before->stream != block->stream) {
            before = NULL;
        }
        if (before != NULL && (block->first_sequence < before->end_sequence ||
                               (block->first_sequence == before->end_sequence &&
                                block->first_word < before->end_word))) {
            order->damaged++;
            continue;
        }
        order->gaps += !goes_on(before, block, order->recording->header.part);
        order->blocks[kept++] = order->blocks[i];
        before = block;
    }
    return kept;
}

static void add_streams(struct timeorder *order, size_t count) {
    struct timeorder_stream *stream = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct memtrace_block *block = block_at(order, order->blocks[i]);
        if (stream == NULL || block_at(order, order->blocks[i - 1])->stream != block->stream) {
            stream = &order->streams[order->stream_count++];
            stream->next_block = i;
            stream->thread = block->thread;
            stream->next_ns = block->first_ns;
        }
        stream->end_block = i + 1;
    }
}

/* ---- Who is next ---- */

static bool is_earlier(const struct timeorder *order, uint32_t left, uint32_t right) {
    const struct timeorder_stream *a = &order->streams[left];
    const struct timeorder_stream *b = &order->streams[right];
    return a->next_ns != b->next_ns ? a->next_ns < b->next_ns : left < right;
}

static void swap(uint32_t *left, uint32_t *right) {
    uint32_t kept = *left;
    *left = *right;
    *right = kept;
}

static void push(struct timeorder *order, uint32_t stream) {
    size_t at = order->queue_size++;
    order->queue[at] = stream;
    while (at != 0 && is_earlier(order, order->queue[at], order->queue[(at - 1) / 2])) {
        swap(&order->queue[at], &order->queue[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static uint32_t pop(struct timeorder *order) {
    uint32_t first = order->queue[0];
    size_t at = 0;
    order->queue[0] = order->queue[--order->queue_size];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < order->queue_size &&
            is_earlier(order, order->queue[child + 1], order->queue[child])) {
            child++;
        }
        if (child >= order->queue_size ||
            !is_earlier(order, order->queue[child], order->queue[at])) {
            return first;
        }
        swap(&order->queue[at], &order->queue[child]);
        at = child;
    }
}

int timeorder_start(struct timeorder *order, const struct recording *recording) {
    size_t count = 0;
    *order = (struct timeorder){.recording = recording};
    order->window_shift = recording->header.flags & MEMTRACE_RECORDING_PRECISE
                              ? PRECISE_SHIFT
                              : (unsigned)MEMTRACE_TICK_SHIFT;
    order->blocks = calloc(recording->block_count + 1, sizeof *order->blocks);
    for (size_t i = 0; order->blocks != NULL && i < recording->block_count; i++) {
        if (recording->blocks[i].block.kind == MEMTRACE_BLOCK_EVENTS) {
            order->blocks[count++] = i;
        }
    }
    if (order->blocks != NULL) {
        qsort_r(order->blocks, count, sizeof *order->blocks, by_stream, order);
        count = drop_repeated(order, count);
    }
    order->streams = calloc(count + 1, sizeof *order->streams);
    order->queue = calloc(count + 1, sizeof *order->queue);
    if (order->blocks == NULL || order->streams == NULL || order->queue == NULL) {
        timeorder_end(order);
        return -1;
    }
    add_streams(order, count);
    for (uint32_t i = 0; i < order->stream_count; i++) {
        push(order, i);
    }
    return 0;
}

void timeorder_end(struct timeorder *order) {
    for (size_t i = 0; order->streams != NULL && i < order->stream_count; i++) {
        if (order->streams[i].is_open) {
            event_decoder_end(&order->streams[i].decoder);
        }
        recording_buffer_free(&order->streams[i].buffer);
    }
    free(order->streams);
    free(order->queue);
    free(order->blocks);
    *order = (struct timeorder){0};
}

/* ---- One stream ---- */

static void close_block(struct timeorder_stream *stream) {
    event_decoder_end(&stream->decoder);
    stream->is_open = false;
}

/* Opens the next block that can be read. */
static bool open_block(struct timeorder *order, struct timeorder_stream *stream) {
    while (stream->next_block < stream->end_block) {
        size_t place = order->blocks[stream->next_block++];
        struct error error;
        stream->decoder = (struct event_decoder){0};
        if (recording_payload(order->recording, place, &stream->buffer, &error) == 0 &&
            event_decoder_start(&stream->decoder, block_at(order, place), stream->buffer.bytes,
                                stream->buffer.size) == 0) {
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

/* The stream's next event, of whatever block. False: there is none. */
static bool next_event(struct timeorder *order, struct timeorder_stream *stream,
                       struct timeorder_event *into) {
    while (stream->is_open || open_block(order, stream)) {
        int result = event_decoder_next(&stream->decoder, &into->event);
        if (result == 1) {
            into->event.text = NULL;
            return true;
        }
        order->damaged += result < 0;
        close_block(stream);
    }
    return false;
}

/* Fills with events of the current stream that lie in this window; more of it may follow. */
static size_t run(struct timeorder *order, struct timeorder_event *events, size_t capacity) {
    struct timeorder_stream *stream = &order->streams[order->current];
    size_t count = 0;
    while (count < capacity) {
        struct timeorder_event *event = &events[count];
        if (stream->has_next) {
            *event = stream->next;
            stream->has_next = false;
        } else if (!next_event(order, stream, event)) {
            order->is_running = false;
            return count;
        }
        if (event->event.time_ns >> order->window_shift > order->window) {
            stream->next = *event;
            stream->has_next = true;
            stream->next_ns = event->event.time_ns;
            push(order, order->current);
            order->is_running = false;
            return count;
        }
        event->window = order->window;
        event->stream = order->current;
        event->thread = stream->thread;
        count++;
    }
    return count;
}

size_t timeorder_read(struct timeorder *order, struct timeorder_event *events, size_t capacity) {
    size_t count = 0;
    while (count < capacity && (order->is_running || order->queue_size != 0)) {
        if (!order->is_running) {
            uint64_t window;
            order->current = pop(order);
            window = order->streams[order->current].next_ns >> order->window_shift;
            order->window = window > order->window ? window : order->window;
            order->is_running = true;
        }
        count += run(order, &events[count], capacity - count);
    }
    return count;
}
