/* SPDX-License-Identifier: MIT */
/*
 * reading.c: what it costs to read the events of a recording, and to pack them, on one core.
 *
 *   --rounds N   the median of so many counts (default 5)
 *   FILE         the recording, last
 *
 * Results, in processor time by event: the file's bytes read and checked (load_ns), unpacked
 * (unpack_ns) and turned into events (decode_ns), all of it (read_ns); then the same events turned
 * into columns (encode_ns) and packed (pack_ns). bytes: of the blocks of events in the file, of
 * those of nodes, by event.
 */
#include "../overhead/bench.h"
#include "analyze/read/block.h"
#include "analyze/read/recording.h"

#include <zstd.h>

struct costs {
    double load_ns, unpack_ns, decode_ns, encode_ns, pack_ns;
    uint64_t events;
    uint64_t bytes, node_bytes;
};

static void fail(const char *what) {
    fprintf(stderr, "reading: %s\n", what);
    exit(1);
}

static struct event *room_for(size_t count) {
    static struct event *events;
    static size_t capacity;
    if (count > capacity) {
        free(events);
        capacity = count;
        events = malloc(capacity * sizeof *events);
    }
    if (events == NULL) {
        fail("out of memory");
    }
    return events;
}

/* Every event is looked at once, not kept: a program that adds up does no less. */
static void decode(const struct memtrace_block_header *block,
                   const struct recording_buffer *buffer) {
    struct event_decoder decoder;
    struct event event;
    uint64_t sum = 0;
    if (event_decoder_start(&decoder, block, buffer->bytes, buffer->size) != 0) {
        fail(decoder.error);
    }
    while (event_decoder_next(&decoder, &event) == 1) {
        sum += event.size + event.block.number;
    }
    event_decoder_end(&decoder);
    BENCH_KEEP(sum);
}

static size_t keep(const struct memtrace_block_header *block, const struct recording_buffer *buffer,
                   struct event *events) {
    struct event_decoder decoder;
    size_t count = 0;
    if (event_decoder_start(&decoder, block, buffer->bytes, buffer->size) != 0) {
        fail(decoder.error);
    }
    while (count < block->items && event_decoder_next(&decoder, &events[count]) == 1) {
        count++;
    }
    event_decoder_end(&decoder);
    return count;
}

static void encode(const struct memtrace_block_header *block, const struct recording_buffer *buffer,
                   struct event_encoder *encoder, ZSTD_CCtx *context, struct costs *costs) {
    struct event *events = room_for(block->items);
    size_t count = keep(block, buffer, events);
    struct memtrace_block_header into;
    size_t size = 0;
    size_t room;
    void *packed;
    const void *payload;
    uint64_t start = bench_now_ns();
    uint64_t encoded;
    event_encoder_start(encoder, block->thread, block->first_number);
    for (size_t i = 0; i < count; i++) {
        event_encoder_add(encoder, &events[i]);
    }
    payload = event_encoder_finish(encoder, &size, &into);
    encoded = bench_now_ns();
    room = ZSTD_compressBound(size);
    packed = malloc(room);
    if (payload == NULL || packed == NULL) {
        fail("out of memory");
    }
    costs->encode_ns += (double)(encoded - start);
    start = bench_now_ns();
    ZSTD_compressCCtx(context, packed, room, payload, size, 1);
    costs->pack_ns += (double)(bench_now_ns() - start);
    free(packed);
}

static void read_block(const struct recording *recording, const struct recording_entry *entry,
                       struct recording_buffer *buffer, struct costs *costs) {
    struct memtrace_block_header block;
    uint64_t start = bench_now_ns();
    uint64_t loaded, unpacked;
    if (block_load(recording->fd, recording->size, entry->offset, &block, buffer) != BLOCK_WHOLE) {
        fail("a damaged block");
    }
    loaded = bench_now_ns();
    if (block_unpack(&block, buffer) != 0) {
        fail("a damaged block");
    }
    unpacked = bench_now_ns();
    decode(&block, buffer);
    costs->decode_ns += (double)(bench_now_ns() - unpacked);
    costs->unpack_ns += (double)(unpacked - loaded);
    costs->load_ns += (double)(loaded - start);
    costs->events += block.items;
    costs->bytes += block_size(&block);
}

static struct costs measure(const struct recording *recording) {
    struct recording_buffer buffer = {0};
    struct costs costs = {0};
    struct event_encoder *encoder = event_encoder_new(recording->header.flags);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    if (encoder == NULL || context == NULL) {
        fail("out of memory");
    }
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct recording_entry *entry = &recording->blocks[i];
        if (entry->block.kind == MEMTRACE_BLOCK_EVENTS) {
            read_block(recording, entry, &buffer, &costs);
            encode(&entry->block, &buffer, encoder, context, &costs);
        }
        costs.node_bytes +=
            entry->block.kind == MEMTRACE_BLOCK_NODES ? block_size(&entry->block) : 0;
    }
    ZSTD_freeCCtx(context);
    event_encoder_free(encoder);
    recording_buffer_free(&buffer);
    return costs;
}

enum { FIGURES = 6 };

int main(int argc, char **argv) {
    static const char *names[FIGURES] = {"load_ns",   "unpack_ns", "decode_ns",
                                         "encode_ns", "pack_ns",   "read_ns"};
    static double values[FIGURES][BENCH_MAX_BATCHES];
    int rounds = (int)bench_option(argc, argv, "--rounds", 5);
    struct error error = {"no file"};
    struct recording *recording = argc > 1 ? recording_open(argv[argc - 1], &error) : NULL;
    struct costs costs = {0};
    if (recording == NULL || rounds < 1 || rounds > BENCH_MAX_BATCHES) {
        fail(error.message);
    }
    for (int i = 0; i < rounds; i++) {
        costs = measure(recording);
        if (costs.events == 0) {
            fail("no events");
        }
        const double figures[FIGURES] = {
            costs.load_ns,   costs.unpack_ns, costs.decode_ns,
            costs.encode_ns, costs.pack_ns,   costs.load_ns + costs.unpack_ns + costs.decode_ns};
        for (int k = 0; k < FIGURES; k++) {
            values[k][i] = figures[k] / (double)costs.events;
        }
    }
    for (int k = 0; k < FIGURES; k++) {
        bench_result(names[k], bench_median(values[k], rounds));
    }
    bench_result("events", (double)costs.events);
    bench_result("bytes", (double)costs.bytes / (double)costs.events);
    bench_result("node_bytes", (double)costs.node_bytes / (double)costs.events);
    recording_close(recording);
    return 0;
}
