/* SPDX-License-Identifier: MIT */
/*
 * largefile.c: writes a recording of any size as a collector would, of a program that never ran:
 * two threads whose sizes, addresses and times are random, so that an event takes as many bytes as
 * one can. Run by benchmarks/run analysis.
 *
 *   --mib N      at least so many MiB (default 100)
 *   FILE         the recording, last
 *
 * Results: events, bytes of the file, and the bytes that live at its end.
 */
#include "../overhead/bench.h"
#include "analyze/read/nodecode.h"
#include "collect/recordfile.h"

enum { THREADS = 2, LIVE = 2000, CONTEXTS = 500, BLOCK_EVENTS = 60000, STEP_NS = 300 };

struct thread {
    struct event_encoder *encoder;
    uint64_t numbers[LIVE]; /* of its live blocks */
    uint64_t sizes[LIVE];
    size_t live;
    uint64_t number; /* of its last allocation */
    uint32_t blocks; /* written */
};

struct program {
    struct thread threads[THREADS];
    struct recordfile file;
    uint64_t now_ns;
    uint64_t random;
    uint64_t events;
    uint64_t held;
};

static void fail(const char *what) {
    fprintf(stderr, "largefile: %s\n", what);
    exit(1);
}

/* xorshift64: fast, and no two of its bytes alike. */
static uint64_t next_random(struct program *program) {
    program->random ^= program->random << 13;
    program->random ^= program->random >> 7;
    program->random ^= program->random << 17;
    return program->random;
}

static void append(struct program *program, struct memtrace_block_header block, const void *payload,
                   size_t size) {
    struct error error = {""};
    if (recordfile_append(&program->file, &block, payload, size, &error) != 0) {
        fail(error.message);
    }
}

/* ---- Events ---- */

static struct event next_alloc(struct program *program, unsigned thread) {
    struct thread *own = &program->threads[thread];
    uint64_t random = next_random(program);
    struct event event = {.kind = EVENT_ALLOC,
                          .time_ns = program->now_ns,
                          .context = 4 + (uint32_t)(random >> 8) % CONTEXTS,
                          .size = 1 + (random >> 20) % 100000,
                          .address = next_random(program) >> 16 & ~UINT64_C(15),
                          .block = {.number = ++own->number, .thread = thread + 2}};
    own->numbers[own->live] = event.block.number;
    own->sizes[own->live++] = event.size;
    program->held += event.size;
    return event;
}

static struct event next_free(struct program *program, unsigned thread) {
    struct thread *own = &program->threads[thread];
    size_t i = next_random(program) % own->live;
    struct event event = {.kind = EVENT_FREE,
                          .time_ns = program->now_ns,
                          .block = {.number = own->numbers[i], .thread = thread + 2}};
    program->held -= own->sizes[i];
    own->live--;
    own->numbers[i] = own->numbers[own->live];
    own->sizes[i] = own->sizes[own->live];
    return event;
}

static void write_block(struct program *program, unsigned thread) {
    struct thread *own = &program->threads[thread];
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_EVENTS,
                                          .stream = thread + 1,
                                          .first_sequence = own->blocks,
                                          .end_sequence = own->blocks + 1};
    const void *payload;
    size_t size;
    event_encoder_start(own->encoder, thread + 2, own->number + 1);
    for (int i = 0; i < BLOCK_EVENTS; i++) {
        bool is_free = own->live == LIVE || (own->live != 0 && next_random(program) % 1000 < 498);
        struct event event;
        program->now_ns += next_random(program) % (2 * STEP_NS / THREADS);
        event = is_free ? next_free(program, thread) : next_alloc(program, thread);
        if (event_encoder_add(own->encoder, &event) != 0) {
            fail("out of memory");
        }
    }
    payload = event_encoder_finish(own->encoder, &size, &block);
    if (payload == NULL) {
        fail("out of memory");
    }
    append(program, block, payload, size);
    program->events += BLOCK_EVENTS;
    own->blocks++;
}

/* ---- What a recording needs beside them ---- */

static void write_program(struct program *program, uint32_t state) {
    static struct memtrace_header header;
    header.version = MEMTRACE_FORMAT_VERSION;
    header.header_size = MEMTRACE_HEADER_SIZE;
    header.byte_order = MEMTRACE_BYTE_ORDER;
    header.end = MEMTRACE_HEADER_SIZE;
    header.state = state;
    header.stacks = MEMTRACE_STACKS_FULL;
    header.pid = 1u << 30; /* nobody's */
    header.start_monotonic_ns = 1;
    header.end_monotonic_ns = program->now_ns + 1;
    memcpy(header.magic, MEMTRACE_MAGIC, sizeof header.magic);
    strcpy(header.executable, "/usr/bin/never-ran");
    append(program, (struct memtrace_block_header){.kind = MEMTRACE_BLOCK_PROGRAM, .items = 1},
           &header, sizeof header);
}

static void write_nodes(struct program *program) {
    static struct memtrace_recording_node nodes[CONTEXTS];
    struct varint_writer payload = {0};
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        nodes[i] = (struct memtrace_recording_node){
            .frame = 0x400000 + i * 16, .parent = i == 0 ? 0 : 4 + (i - 1) / 2, .id = 4 + i};
    }
    if (nodecode_pack(nodes, CONTEXTS, &payload) != 0) {
        fail("out of memory");
    }
    append(program, (struct memtrace_block_header){.kind = MEMTRACE_BLOCK_NODES, .items = CONTEXTS},
           payload.bytes, payload.size);
    free(payload.bytes);
}

static void start(struct program *program, const char *path) {
    struct memtrace_recording_header header = {.version = MEMTRACE_RECORDING_VERSION,
                                               .header_size = sizeof header,
                                               .byte_order = MEMTRACE_BYTE_ORDER,
                                               .pid = 1u << 30,
                                               .flags = MEMTRACE_RECORDING_PRECISE};
    struct error error = {""};
    memcpy(header.magic, MEMTRACE_RECORDING_MAGIC, sizeof header.magic);
    *program = (struct program){.file = RECORDFILE_NONE, .random = 88172645463325252u};
    if (recordfile_create(&program->file, path, RECORDFILE_REPLACE, &header, &error) != 0) {
        fail(error.message);
    }
    for (int i = 0; i < THREADS; i++) {
        program->threads[i].encoder = event_encoder_new(header.flags);
        if (program->threads[i].encoder == NULL) {
            fail("out of memory");
        }
    }
    write_program(program, MEMTRACE_STATE_RUNNING);
    write_nodes(program);
}

int main(int argc, char **argv) {
    static struct program program;
    uint64_t bytes = (uint64_t)bench_option(argc, argv, "--mib", 100) << 20;
    struct error error = {""};
    if (argc < 2) {
        fail("no file");
    }
    start(&program, argv[argc - 1]);
    while (program.file.size < bytes) {
        uint64_t began = program.now_ns;
        for (unsigned i = 0; i < THREADS; i++) {
            program.now_ns = began; /* they run side by side */
            write_block(&program, i);
        }
    }
    write_program(&program, MEMTRACE_STATE_ENDED);
    bytes = program.file.size;
    if (recordfile_close(&program.file, &error) != 0) {
        fail(error.message);
    }
    bench_result("events", (double)program.events);
    bench_result("bytes", (double)bytes);
    bench_result("held", (double)program.held);
    return 0;
}
