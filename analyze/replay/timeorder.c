/* SPDX-License-Identifier: MIT */
/* timeorder.c: merges the streams of a recording by time. See timeorder.h. */
#include "analyze/replay/timeorder.h"

#include "analyze/base/hotpath.h"
#include "analyze/read/block.h"

#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 1 << MEMTRACE_THREAD_BITS,
    PRECISE_SHIFT = 16, /* 65 us: a thread may be interrupted between clock and event */
};

/* When a stream in the queue is to go on; what it did meanwhile for others may have made it later.
 */
struct timeorder_turn {
    uint64_t time_ns;
    uint32_t stream;
};

/* A stream that goes on until it has allocated the block of this number. */
struct timeorder_wait {
    uint32_t stream;
    uint64_t number;
};

#define NO_STREAM UINT32_MAX
#define SHARED    (UINT32_MAX - 1) /* several streams have this thread id */
#define NO_NUMBER UINT64_MAX

/* ---- A stream ---- */

/* Opens the next block that can be read. */
static bool timestream_open(struct timeorder *order, struct timeorder_stream *stream) {
    while (stream->next_block < stream->end_block) {
        struct timeorder_block place = order->blocks[stream->next_block++];
        int result;
        stream->decoder = (struct event_decoder){0};
        result =
            recording_payload(order->parts.items[place.part], place.block, &stream->buffer, NULL);
        if (result == 0 && event_decoder_start(&stream->decoder, timeorder_header(order, place),
                                               stream->buffer.bytes, stream->buffer.size) == 0) {
            stream->decoder.skips_addresses = order->skips_addresses;
            stream->is_open = true;
            return true;
        }
        order->damaged++;
        order->no_memory |= result == RECORDING_NO_MEMORY || stream->decoder.no_memory;
        event_decoder_end(&stream->decoder);
    }
    recording_buffer_free(&stream->buffer);
    stream->buffer = (struct recording_buffer){0};
    return false;
}

RARELY_DONE static bool timestream_find(struct timeorder *order, struct timeorder_stream *stream,
                                        struct timeorder_event *into, int decoded) {
    while (decoded != 1) {
        if (stream->is_open) {
            order->damaged += decoded < 0;
            order->no_memory |= stream->decoder.no_memory;
            event_decoder_end(&stream->decoder);
            stream->is_open = false;
        }
        if (!timestream_open(order, stream)) {
            return false;
        }
        decoded = event_decoder_next(&stream->decoder, &into->event);
    }
    if (into->event.kind == EVENT_MARK) {
        /* The block's bytes are gone by the time the event is looked at. */
        into->event.text = texts_keep(&order->texts, into->event.text, into->event.text_size);
        into->event.text_size = (uint32_t)strlen(into->event.text);
    }
    return true;
}

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
static void timestream_put_back(struct timeorder_stream *stream,
                                const struct timeorder_event *event) {
    stream->next = *event;
    stream->has_next = true;
    stream->next_ns = event->event.time_ns;
}

/* ---- Which blocks belong to which stream ---- */

static int timeorder_by_stream(const void *left, const void *right, void *context) {
    struct timeorder_block a = *(const struct timeorder_block *)left;
    struct timeorder_block b = *(const struct timeorder_block *)right;
    const struct memtrace_block_header *first = timeorder_header(context, a);
    const struct memtrace_block_header *second = timeorder_header(context, b);
    if (first->stream != second->stream) {
        return first->stream < second->stream ? -1 : 1;
    }
    if (first->first_sequence != second->first_sequence) {
        return first->first_sequence < second->first_sequence ? -1 : 1;
    }
    if (first->first_word != second->first_word) {
        return first->first_word < second->first_word ? -1 : 1;
    }
    if (a.part != b.part) {
        return a.part < b.part ? -1 : 1;
    }
    return (a.block > b.block) - (a.block < b.block);
}

/* Whether `block` goes on where `before` (NULL: the stream's beginning) ended. */
static bool timeorder_goes_on(const struct memtrace_block_header *before,
                              const struct memtrace_block_header *block, uint32_t part) {
    if (before == NULL) {
        return part != 0 || (block->first_sequence == 0 && block->first_word == 0);
    }
    return block_goes_on(before, block);
}

/* Leaves out what a stream has twice, which no writer writes: a block that begins before the last
 * one ended. Counts the gaps. */
static size_t timeorder_drop_repeated(struct timeorder *order, size_t count) {
    const struct memtrace_block_header *before = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct memtrace_block_header *block = timeorder_header(order, order->blocks[i]);
        if (before != NULL && before->stream != block->stream) {
            before = NULL;
        }
        if (before != NULL && (block->first_sequence < before->end_sequence ||
                               (block->first_sequence == before->end_sequence &&
                                block->first_word < before->end_word))) {
            order->damaged++;
            continue;
        }
        order->gaps += !timeorder_goes_on(before, block, order->parts.items[0]->header.part);
        order->blocks[kept++] = order->blocks[i];
        before = block;
    }
    return kept;
}

static void timeorder_add_streams(struct timeorder *order, size_t count) {
    struct timeorder_stream *stream = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct memtrace_block_header *block = timeorder_header(order, order->blocks[i]);
        if (stream == NULL ||
            timeorder_header(order, order->blocks[i - 1])->stream != block->stream) {
            stream = &order->streams[order->stream_count++];
            stream->first_block = stream->next_block = stream->start_block = i;
            stream->thread = block->thread;
            stream->newest = block->first_number != 0 ? block->first_number - 1 : 0;
            stream->next_ns = block->first_ns;
            if (block->thread < THREADS) {
                uint32_t *only = &order->stream_of[block->thread];
                *only = *only == NO_STREAM && block->thread != MEMTRACE_THREAD_OTHERS
                            ? (uint32_t)(order->stream_count - 1)
                            : SHARED;
            }
        }
        stream->end_block = i + 1;
    }
}

/* ---- Who is next ---- */

static bool timeorder_is_earlier(struct timeorder_turn left, struct timeorder_turn right) {
    return left.time_ns != right.time_ns ? left.time_ns < right.time_ns
                                         : left.stream < right.stream;
}

static void timeorder_swap(struct timeorder_turn *left, struct timeorder_turn *right) {
    struct timeorder_turn kept = *left;
    *left = *right;
    *right = kept;
}

static void timeorder_push(struct timeorder *order, uint32_t stream) {
    struct timeorder_turn *queue = order->queue;
    size_t at = order->queue_size++;
    queue[at] = (struct timeorder_turn){order->streams[stream].next_ns, stream};
    while (at != 0 && timeorder_is_earlier(queue[at], queue[(at - 1) / 2])) {
        timeorder_swap(&queue[at], &queue[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static struct timeorder_turn timeorder_pop(struct timeorder *order) {
    struct timeorder_turn *queue = order->queue;
    struct timeorder_turn first = queue[0];
    size_t at = 0;
    queue[0] = queue[--order->queue_size];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < order->queue_size && timeorder_is_earlier(queue[child + 1], queue[child])) {
            child++;
        }
        if (child >= order->queue_size || !timeorder_is_earlier(queue[child], queue[at])) {
            return first;
        }
        timeorder_swap(&queue[at], &queue[child]);
        at = child;
    }
}

/* How far frees of other streams need not wait for this one. */
static void timeorder_note_newest(struct timeorder *order, const struct timeorder_stream *stream,
                                  uint32_t place) {
    if (stream->thread < THREADS && order->stream_of[stream->thread] == place) {
        order->known[stream->thread] = stream->newest;
    }
}

/* Collects all blocks of events. 0, or -1: out of memory. */
static int timeorder_gather(struct timeorder *order, size_t *count) {
    size_t most = 0;
    for (size_t part = 0; part < order->parts.count; part++) {
        most += order->parts.items[part]->block_count;
    }
    *count = 0;
    order->blocks = calloc(most + 1, sizeof *order->blocks);
    if (order->blocks == NULL) {
        return -1;
    }
    for (size_t part = 0; part < order->parts.count; part++) {
        for (size_t i = 0; i < order->parts.items[part]->block_count; i++) {
            struct timeorder_block place = {part, i};
            if (timeorder_header(order, place)->kind == MEMTRACE_BLOCK_EVENTS) {
                order->blocks[(*count)++] = place;
            }
        }
    }
    return 0;
}

int timeorder_start(struct timeorder *order, struct timeorder_parts parts) {
    size_t count = 0;
    *order = (struct timeorder){.parts = parts, .stop_ns = UINT64_MAX};
    order->window_shift = parts.items[0]->header.flags & MEMTRACE_RECORDING_PRECISE
                              ? PRECISE_SHIFT
                              : (unsigned)MEMTRACE_TICK_SHIFT;
    if (timeorder_gather(order, &count) == 0) {
        qsort_r(order->blocks, count, sizeof *order->blocks, timeorder_by_stream, order);
        count = timeorder_drop_repeated(order, count);
        order->block_count = count;
    }
    order->streams = calloc(count + 1, sizeof *order->streams);
    order->queue = calloc(count + 1, sizeof *order->queue);
    order->waits = calloc(count + 1, sizeof *order->waits);
    order->stream_of = malloc(THREADS * sizeof *order->stream_of);
    order->known = malloc(THREADS * sizeof *order->known);
    if (order->blocks == NULL || order->streams == NULL || order->queue == NULL ||
        order->waits == NULL || order->stream_of == NULL || order->known == NULL) {
        timeorder_end(order);
        return -1;
    }
    for (size_t i = 0; i < THREADS; i++) {
        order->stream_of[i] = NO_STREAM;
        order->known[i] = UINT64_MAX;
    }
    timeorder_add_streams(order, count);
    for (uint32_t i = 0; i < order->stream_count; i++) {
        timeorder_note_newest(order, &order->streams[i], i);
        timeorder_push(order, i);
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
    for (size_t i = 0; i < order->edge_count; i++) {
        free(order->edges[i].place.bytes);
    }
    free(order->edges);
    free(order->streams);
    free(order->queue);
    free(order->waits);
    free(order->stream_of);
    free(order->known);
    free(order->blocks);
    texts_free(&order->texts);
    *order = (struct timeorder){0};
}

/* ---- Turns ---- */

static void timeorder_start_turn(struct timeorder *order, uint32_t stream, uint64_t number) {
    order->streams[stream].is_at_work = true;
    order->waits[order->depth++] = (struct timeorder_wait){stream, number};
}

static void timeorder_end_turn(struct timeorder *order) {
    order->streams[order->waits[--order->depth].stream].is_at_work = false;
}

/* Whether this block was not allocated yet, and by which stream it will be. */
static bool timeorder_is_ahead(const struct timeorder *order, struct event_block name,
                               uint32_t *owner) {
    const struct timeorder_stream *stream;
    *owner = name.number != 0 && name.thread < THREADS ? order->stream_of[name.thread] : NO_STREAM;
    if (*owner >= order->stream_count) {
        return false;
    }
    stream = &order->streams[*owner];
    return stream->newest < name.number && !stream->is_at_work && !stream->has_ended;
}

/* Lets the stream go first that allocates what the event ends, once. */
static bool timeorder_waits(struct timeorder *order, struct timeorder_stream *stream,
                            const struct timeorder_event *event) {
    bool is_alloc = event->event.kind == EVENT_ALLOC;
    struct event_block name = is_alloc ? event->event.old : event->event.block;
    uint32_t owner;
    if ((!is_alloc && event->event.kind != EVENT_FREE) || stream->has_asked ||
        !timeorder_is_ahead(order, name, &owner)) {
        stream->has_asked = false;
        return false;
    }
    timestream_put_back(stream, event);
    stream->has_asked = true;
    timeorder_start_turn(order, owner, name.number);
    return true;
}

/* Whether another stream may come first: the event lies behind the window, or it is of a mapping,
 * and not the turn's first. These come in the order of their times within windows, too: munmap has
 * the time before the call and mmap that behind it, so whoever got an address comes behind whoever
 * gave it back. Who is waited for is not asked: a thread that was interrupted may have believed in
 * an old time for long, but what it freed had been allocated. */
static bool timeorder_is_later(const struct timeorder *order, const struct event *event) {
    return order->depth == 1 && (event->time_ns >> order->window_shift > order->window ||
                                 (event->kind == EVENT_MAP && event->time_ns > order->turn_ns));
}

static void timeorder_hand_out(struct timeorder *order, struct timeorder_stream *stream,
                               struct timeorder_event *events, size_t count, uint32_t place) {
    const uint64_t window = order->window;
    const uint32_t thread = stream->thread;
    uint64_t newest = stream->newest;
    for (size_t i = 0; i < count; i++) {
        events[i].window = window;
        events[i].stream = place;
        events[i].thread = thread;
        if (events[i].event.kind == EVENT_ALLOC) {
            newest = events[i].event.block.number;
        }
    }
    stream->newest = newest;
    timeorder_note_newest(order, stream, place);
}

/* The stream's next events; all but the last are of the window and need not wait. Their number; 0:
 * there are none. */
static size_t timeorder_next_events(struct timeorder *order, struct timeorder_stream *stream,
                                    struct timeorder_event *events, size_t most) {
    const struct event_decoder_stop stop = {
        .last_ns = ((order->window + 1) << order->window_shift) - 1, .known = order->known};
    if (stream->has_next) {
        *events = stream->next;
        stream->has_next = false;
        return 1;
    }
    return timestream_fill(order, stream, &stop, events, most);
}

/* Whether the event's time has come. If not, the turn is over, or another's comes first. */
static bool timeorder_comes_now(struct timeorder *order, struct timeorder_stream *stream,
                                uint32_t place, const struct timeorder_event *event) {
    if (timeorder_is_later(order, &event->event)) {
        timestream_put_back(stream, event);
        timeorder_end_turn(order);
        if (order->depth == 0) {
            timeorder_push(order, place);
        }
        return false;
    }
    return !timeorder_waits(order, stream, event);
}

/* Fills with events of the stream whose turn it is, until the turn is over or another's comes
 * first. Returns their number. Who goes on for another's sake is looked at event by event. */
static size_t timeorder_run(struct timeorder *order, struct timeorder_event *events,
                            size_t capacity) {
    const struct timeorder_wait turn = order->waits[order->depth - 1];
    struct timeorder_stream *stream = &order->streams[turn.stream];
    for (size_t count = 0; count < capacity; count++) {
        size_t most = turn.number == NO_NUMBER ? capacity - count : 1;
        size_t found = timeorder_next_events(order, stream, &events[count], most);
        if (found == 0) {
            stream->has_ended = true;
            timeorder_end_turn(order);
            return count;
        }
        timeorder_hand_out(order, stream, &events[count], found - 1, turn.stream);
        count += found - 1;
        if (!timeorder_comes_now(order, stream, turn.stream, &events[count])) {
            return count;
        }
        timeorder_hand_out(order, stream, &events[count], 1, turn.stream);
        if (stream->newest >= turn.number) {
            timeorder_end_turn(order);
            return count + 1;
        }
    }
    return capacity;
}

/* ---- Places ---- */

/* How many events of its open block have been handed out. */
static uint32_t timeorder_handed_out(const struct timeorder *order,
                                     const struct timeorder_stream *stream) {
    struct timeorder_block place = order->blocks[stream->next_block - 1];
    return timeorder_header(order, place)->items - event_decoder_left(&stream->decoder) -
           stream->has_next;
}

void timeorder_put_place(const struct timeorder *order, struct varint_writer *place) {
    for (size_t i = 0; i < order->stream_count; i++) {
        const struct timeorder_stream *stream = &order->streams[i];
        varint_put(place, stream->next_block - stream->first_block - stream->is_open);
        varint_put(place, stream->is_open ? timeorder_handed_out(order, stream) : 0);
        varint_put(place, stream->newest);
    }
}

/* The window that begins may be the first behind an edge, or behind several. */
static void timeorder_pass_edges(struct timeorder *order) {
    while (order->next_edge < order->edge_count &&
           order->window << order->window_shift >= order->edges[order->next_edge].time_ns) {
        timeorder_put_place(order, &order->edges[order->next_edge++].place);
    }
}

void timeorder_note_places(struct timeorder *order, const uint64_t *edges, size_t edge_count) {
    order->edges = calloc(edge_count + 1, sizeof *order->edges);
    if (order->edges == NULL) {
        job_fail_memory();
    }
    for (size_t i = 0; i < edge_count; i++) {
        order->edges[order->edge_count++].time_ns = edges[i];
    }
}

void timeorder_take_place(struct timeorder *order, size_t edge, struct varint_writer *place) {
    struct varint_writer *noted = &order->edges[edge].place;
    if (noted->failed) {
        job_fail_memory();
    }
    varint_put_bytes(place, noted->bytes, noted->size);
    free(noted->bytes);
    *noted = (struct varint_writer){0};
}

/* Leaves out what lies before the place, and reads what comes then. */
static void timeorder_skip(struct timeorder *order, struct timeorder_stream *stream,
                           uint32_t count) {
    struct timeorder_event event;
    stream->start_block = stream->next_block;
    stream->start_skip = count;
    if (stream->next_block == stream->end_block) {
        stream->has_ended = true;
        return;
    }
    stream->next_ns = timeorder_header(order, order->blocks[stream->next_block])->first_ns;
    if (count == 0 || !timestream_open(order, stream)) {
        return;
    }
    while (count != 0 && event_decoder_next(&stream->decoder, &event.event) == 1) {
        count--;
    }
    if (timestream_next(order, stream, &event)) {
        timestream_put_back(stream, &event);
    } else {
        stream->has_ended = true;
    }
}

int timeorder_seek(struct timeorder *order, const void *place, size_t size, uint64_t stop_ns) {
    bool failed = false;
    struct varint_reader reader = {place, place, &failed};
    order->stop_ns = stop_ns;
    if (size == 0) {
        return 0;
    }
    reader.end += size;
    order->queue_size = 0;
    for (uint32_t i = 0; i < order->stream_count; i++) {
        struct timeorder_stream *stream = &order->streams[i];
        uint64_t blocks;
        uint32_t count;
        if (reader.next == reader.end) { /* it began later */
            timeorder_push(order, i);
            continue;
        }
        blocks = varint_get(&reader);
        count = (uint32_t)varint_get(&reader);
        stream->newest = varint_get(&reader);
        timeorder_note_newest(order, stream, i);
        if (failed || blocks > stream->end_block - stream->next_block) {
            return -1;
        }
        stream->next_block += blocks;
        timeorder_skip(order, stream, count);
        if (!stream->has_ended) {
            timeorder_push(order, i);
        }
    }
    return 0;
}

struct timeorder_before timeorder_before(const struct timeorder *order, size_t stream) {
    const struct timeorder_stream *from = &order->streams[stream];
    return (struct timeorder_before){from->first_block, from->start_block, from->end_block,
                                     from->start_skip};
}

/* ---- All streams ---- */

/* Begins the turn of the stream that is next. false: no stream has events. */
static bool timeorder_next_turn(struct timeorder *order) {
    while (order->queue_size != 0) {
        struct timeorder_turn turn = timeorder_pop(order);
        const struct timeorder_stream *stream = &order->streams[turn.stream];
        uint64_t window = turn.time_ns >> order->window_shift;
        if (stream->has_ended) {
            continue;
        }
        if (stream->next_ns > turn.time_ns) { /* it went on for another's sake */
            timeorder_push(order, turn.stream);
            continue;
        }
        window = window > order->window ? window : order->window;
        if (window << order->window_shift >= order->stop_ns) {
            order->queue_size = 0;
            return false;
        }
        order->window = window;
        order->turn_ns = turn.time_ns;
        timeorder_pass_edges(order);
        timeorder_start_turn(order, turn.stream, NO_NUMBER);
        return true;
    }
    return false;
}

size_t timeorder_read(struct timeorder *order, struct timeorder_event *events, size_t capacity) {
    size_t count = 0;
    while (count < capacity && (order->depth != 0 || timeorder_next_turn(order))) {
        count += timeorder_run(order, &events[count], capacity - count);
    }
    return count;
}
