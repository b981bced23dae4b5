/* SPDX-License-Identifier: MIT */
/*
 * recording_random.h: a random program as a recording: threads that allocate, free each other's
 * blocks, resize, map and unmap, and say marks, with clocks that are late. Included by unit tests.
 */
#ifndef TESTS_UNIT_RECORDING_RANDOM_H
#define TESTS_UNIT_RECORDING_RANDOM_H

#include "tests/unit/recording_builder.h"

#include <sys/mman.h>

enum {
    RANDOM_THREADS = 6,
    RANDOM_CONTEXTS = 36, /* 4 .. 35, and 36 for those that the file lacks */
    RANDOM_BEFORE = 3,    /* the heap from before an attach */
    RANDOM_POOL = 34,
    RANDOM_MAPPING = 35,
    RANDOM_EVENTS = 6000,
    RANDOM_LIVE = 120,
    RANDOM_PER_TICK = 20, /* events */
};

/* A change of the heap from before; the event's place, from 1 on. */
struct random_before {
    uint64_t order, time_ns;
    int64_t bytes;
};

struct recording_random {
    unsigned seed;
    unsigned threads;
    bool is_precise;
    bool is_late;                 /* some thread believes in an old time for long */
    bool is_shared;               /* all threads but one have one id, each a stream of its own */
    bool is_sampled_often;        /* samples all the time, not two at the end */
    uint64_t inherited;           /* the first so many blocks were its parent's */
    struct random_before *before; /* of one that was attached to: has room for RANDOM_EVENTS; the
                                     first one with 0 bytes is the end. NULL: it was not */
};

struct random_program {
    const struct recording_random *options;
    struct recording_build *build;
    struct event_encoder *encoders[RANDOM_THREADS];
    uint64_t numbers[RANDOM_THREADS]; /* by id - 2 */
    uint64_t times[RANDOM_THREADS];
    struct event_block live[RANDOM_LIVE];
    bool is_pool[RANDOM_LIVE];
    size_t live_count;
    size_t before_count;
    uint64_t now;
};

static inline uint64_t recording_random_time(const struct recording_random *options) {
    uint64_t ticks = RANDOM_EVENTS / RANDOM_PER_TICK;
    uint64_t time = (uint64_t)rand() % ticks << MEMTRACE_TICK_SHIFT;
    return options->is_precise ? time + (uint64_t)rand() % (1 << MEMTRACE_TICK_SHIFT) : time;
}

static inline uint32_t random_id(const struct random_program *program, unsigned thread) {
    if (program->options->is_shared) {
        return thread == 0 ? 2 : MEMTRACE_THREAD_OTHERS;
    }
    return thread + 2;
}

static inline uint64_t *random_number(struct random_program *program, unsigned thread) {
    return &program->numbers[program->options->is_shared && thread > 1 ? 1 : thread];
}

static inline void random_start_block(struct random_program *program, unsigned thread) {
    event_encoder_start(program->encoders[thread], random_id(program, thread),
                        *random_number(program, thread) + 1);
}

static inline void random_flush(struct random_program *program, unsigned thread) {
    if (event_encoder_count(program->encoders[thread]) != 0) {
        recording_build_encoded(program->build, program->encoders[thread], thread + 1);
        random_start_block(program, thread);
    }
}

static inline void random_write(struct random_program *program, unsigned thread,
                                struct event *event) {
    const struct recording_random *options = program->options;
    uint64_t tick = program->now / RANDOM_PER_TICK;
    uint64_t part = program->now % RANDOM_PER_TICK * ((1 << MEMTRACE_TICK_SHIFT) / RANDOM_PER_TICK);
    uint64_t time = (tick << MEMTRACE_TICK_SHIFT) + (options->is_precise ? part : 0);
    bool is_late = options->is_late && thread == 1 && tick % 50 != 0;
    program->now++;
    if (!is_late && (rand() % 4 != 0 || options->is_precise) && time > program->times[thread]) {
        program->times[thread] = time;
    }
    event->time_ns = program->times[thread];
    if (event_encoder_add(program->encoders[thread], event) != 0) {
        abort();
    }
    if (rand() % 60 == 0 && program->build->count < BUILD_BLOCKS - 12) {
        random_flush(program, thread);
    }
}

static inline struct event_block random_take(struct random_program *program, bool *is_pool) {
    size_t i = rand() % 3 == 0 ? program->live_count - 1 : (size_t)rand() % program->live_count;
    struct event_block block = program->live[i];
    *is_pool = program->is_pool[i];
    program->live_count--;
    program->live[i] = program->live[program->live_count];
    program->is_pool[i] = program->is_pool[program->live_count];
    return block;
}

static inline void random_alloc(struct random_program *program, unsigned thread) {
    struct event event = {.kind = EVENT_ALLOC, .size = (uint64_t)(rand() % 12) * 100};
    bool is_pool = false;
    event.context = 4 + (uint32_t)rand() % (RANDOM_MAPPING - 4);
    if (rand() % 300 == 0) {
        event.context = 9999;
    }
    if (program->live_count != 0 && (program->live_count == RANDOM_LIVE || rand() % 5 == 0)) {
        event.old = random_take(program, &is_pool);
        event.context = is_pool ? RANDOM_POOL : event.context == RANDOM_POOL ? 4 : event.context;
    }
    event.block = (struct event_block){.number = ++*random_number(program, thread),
                                       .thread = random_id(program, thread)};
    program->live[program->live_count] = event.block;
    program->is_pool[program->live_count++] = event.context == RANDOM_POOL;
    random_write(program, thread, &event);
}

static inline void random_free(struct random_program *program, unsigned thread) {
    struct event event = {.kind = EVENT_FREE};
    bool is_pool;
    event.block = random_take(program, &is_pool);
    random_write(program, thread, &event);
}

static inline void random_other(struct random_program *program, unsigned thread) {
    struct event event = {.kind = EVENT_MAP,
                          .operation = (uint8_t)(MEMTRACE_MAP_MAP + rand() % 3),
                          .flags = rand() % 3 == 0 ? MAP_FIXED : 0,
                          .context = RANDOM_MAPPING,
                          .address = 0x100000 + (uint64_t)(rand() % 32) * 4096,
                          .size = (uint64_t)(1 + rand() % 8) * 4096};
    char text[16];
    if (event.operation == MEMTRACE_MAP_MAP && event.flags == 0) {
        event.address += 0x1000000 + program->now * 65536; /* the kernel finds a free place */
    }
    if (event.operation == MEMTRACE_MAP_REMAP) {
        event.old_address = 0x100000 + (uint64_t)(rand() % 32) * 4096;
        event.old_size = 8192;
    }
    if (rand() % 2) {
        snprintf(text, sizeof text, "mark %d", rand() % 9);
        event = (struct event){.kind = EVENT_MARK,
                               .operation = MEMTRACE_MARK_POINT,
                               .text = text,
                               .text_size = (uint32_t)strlen(text)};
    }
    random_write(program, thread, &event);
}

/* The first one is what is there. */
static inline void random_before(struct random_program *program, unsigned thread) {
    bool is_first = program->before_count == 0;
    struct event event = {.kind = EVENT_MARK,
                          .operation = is_first ? MEMTRACE_MARK_BEFORE : MEMTRACE_MARK_BEFORE_FREED,
                          .text = "",
                          .id = is_first ? 100000 : 1 + (uint64_t)rand() % 300};
    random_write(program, thread, &event);
    program->options->before[program->before_count++] = (struct random_before){
        program->now, event.time_ns, is_first ? (int64_t)event.id : -(int64_t)event.id};
}

static inline void random_nodes(struct recording_build *build) {
    struct memtrace_recording_node nodes[RANDOM_CONTEXTS];
    for (uint32_t id = 4; id < RANDOM_CONTEXTS; id++) {
        nodes[id] = (struct memtrace_recording_node){
            .frame = UINT64_C(1) << MEMTRACE_FRAME_MODULE_SHIFT | (0x1000 + id * 16),
            .parent = id == 4 ? 0 : 4 + (id - 5) / 2,
            .id = id};
    }
    nodes[RANDOM_POOL].frame = MEMTRACE_FRAME_POOL + 1;
    nodes[RANDOM_MAPPING].frame = MEMTRACE_FRAME_MAPPING;
    nodes[RANDOM_BEFORE] =
        (struct memtrace_recording_node){.frame = MEMTRACE_FRAME_BEFORE, .id = RANDOM_BEFORE};
    recording_build_nodes(build, &nodes[RANDOM_BEFORE], RANDOM_CONTEXTS - RANDOM_BEFORE);
}

static inline void random_sample(struct random_program *program) {
    const struct memtrace_sample sample = {.time_ns = (program->now / RANDOM_PER_TICK)
                                                      << MEMTRACE_TICK_SHIFT,
                                           .resident_bytes = 1 + program->now};
    recording_build_block(program->build,
                          (struct memtrace_block_header){.kind = MEMTRACE_BLOCK_SAMPLES,
                                                         .first_ns = sample.time_ns,
                                                         .last_ns = sample.time_ns,
                                                         .items = 1},
                          &sample, sizeof sample);
}

static inline void random_run(struct random_program *program) {
    unsigned threads = program->options->threads;
    for (int i = 0; i < RANDOM_EVENTS; i++) {
        unsigned thread = (unsigned)rand() % threads;
        if (program->options->is_sampled_often && i % 500 == 0) {
            random_sample(program);
        }
        if (program->options->before != NULL && (i == 0 || rand() % 40 == 0)) {
            random_before(program, thread);
        } else if (rand() % 60 == 0) {
            random_other(program, thread);
        } else if (program->live_count != 0 && rand() % 100 < 45) {
            random_free(program, thread);
        } else {
            random_alloc(program, thread);
        }
    }
}

/* Fills the build, which starts from {0}, without an index. */
static inline void recording_random(struct recording_build *build,
                                    const struct recording_random *options) {
    struct random_program program = {.options = options, .build = build};
    const struct memtrace_sample samples[2] = {
        {.time_ns = 5 << MEMTRACE_TICK_SHIFT, .resident_bytes = 7},
        {.time_ns = UINT64_C(100) << MEMTRACE_TICK_SHIFT, .resident_bytes = 8}};
    srand(options->seed);
    recording_build_header(build);
    ((struct memtrace_recording_header *)build->bytes)->flags =
        options->is_precise ? MEMTRACE_RECORDING_PRECISE : 0;
    build->inherited = options->inherited;
    recording_build_program(build, "/usr/bin/example");
    random_nodes(build);
    for (unsigned thread = 0; thread < options->threads; thread++) {
        program.encoders[thread] =
            event_encoder_new(options->is_precise ? MEMTRACE_RECORDING_PRECISE : 0);
        random_start_block(&program, thread);
    }
    random_run(&program);
    for (unsigned thread = 0; thread < options->threads; thread++) {
        random_flush(&program, thread);
        event_encoder_free(program.encoders[thread]);
    }
    if (!options->is_sampled_often) {
        recording_build_items(build, MEMTRACE_BLOCK_SAMPLES, samples, sizeof samples[0], 2);
    }
}

#endif
