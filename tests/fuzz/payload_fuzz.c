/* SPDX-License-Identifier: MIT */
/*
 * payload_fuzz.c: libFuzzer's target: any bytes as the payload of a block of events (4 bytes: how
 * many, 8 bytes: first number, then columns), of nodes and of a profile's segments. What can be
 * decoded at all is encoded again and must come back as it was. tests/fuzz/run runs it.
 */
#include "analyze/read/eventcode.h"
#include "analyze/read/nodecode.h"
#include "analyze/read/segmentpack.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MOST = 1 << 12 };

static size_t decode(const struct memtrace_block_header *block, const void *payload, size_t size,
                     struct event *events) {
    struct event_decoder decoder;
    size_t count = 0;
    if (event_decoder_start(&decoder, block, payload, size) != 0) {
        return 0;
    }
    while (count < EVENTS_MOST && event_decoder_next(&decoder, &events[count]) == 1) {
        count++;
    }
    event_decoder_end(&decoder);
    return count;
}

static void assert_same(const struct event *a, const struct event *b) {
    struct event x = *a;
    struct event y = *b;
    if (x.kind == EVENT_MARK && y.kind == EVENT_MARK) {
        if (x.text_size != y.text_size ||
            (x.text_size != 0 && memcmp(x.text, y.text, x.text_size) != 0)) {
            abort();
        }
        x.text = y.text = NULL;
    }
    if (memcmp(&x, &y, sizeof x) != 0) {
        abort();
    }
}

/* Numbers that an encoder may be given: they go up. */
static size_t encodable(const struct event *events, size_t count, uint64_t first_number) {
    uint64_t number = first_number - 1;
    for (size_t i = 0; i < count; i++) {
        if (events[i].kind == EVENT_ALLOC && events[i].block.number <= number) {
            return i;
        }
        number = events[i].kind == EVENT_ALLOC ? events[i].block.number : number;
    }
    return count;
}

static void round_trip(const struct memtrace_block_header *block, const struct event *events,
                       size_t count) {
    static struct event again[EVENTS_MOST];
    static struct event_encoder *encoder;
    struct memtrace_block_header into = {0};
    const void *payload;
    size_t size;
    if (encoder == NULL) {
        encoder = event_encoder_new(0);
    }
    event_encoder_start(encoder, block->thread, block->first_number);
    for (size_t i = 0; i < count; i++) {
        if (event_encoder_add(encoder, &events[i]) != 0) {
            abort();
        }
    }
    payload = event_encoder_finish(encoder, &size, &into);
    if (payload == NULL || decode(&into, payload, size, again) != count) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        assert_same(&events[i], &again[i]);
    }
}

/* Nothing is written beyond the profile's pages. */
static void put_segments(const void *payload, size_t size) {
    unsigned char *bytes = calloc(16, MEMTRACE_PAGE_SIZE);
    uint64_t budget = (uint64_t)64 * MEMTRACE_PAGE_SIZE;
    if (bytes == NULL) {
        abort();
    }
    segmentpack_unpack(payload, size, bytes, (uint64_t)16 * MEMTRACE_PAGE_SIZE, &budget);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct event events[EVENTS_MOST];
    struct memtrace_block_header block = {.thread = 3};
    struct memtrace_recording_node *nodes;
    size_t count;
    if (size < 12) {
        return 0;
    }
    memcpy(&block.items, data, 4);
    memcpy(&block.first_number, data + 4, 8);
    count = decode(&block, data + 12, size - 12, events);
    count = encodable(events, count, block.first_number);
    round_trip(&block, events, count);
    put_segments(data + 12, size - 12);
    if (nodecode_unpack(data + 12, size - 12, block.items, &nodes) == 0) {
        struct varint_writer payload = {0};
        struct memtrace_recording_node *again;
        if (nodecode_pack(nodes, block.items, &payload) != 0 ||
            nodecode_unpack(payload.bytes, payload.size, block.items, &again) != 0 ||
            (block.items != 0 && memcmp(nodes, again, block.items * sizeof *nodes) != 0)) {
            abort();
        }
        free(again);
        free(payload.bytes);
        free(nodes);
    }
    return 0;
}
