/* SPDX-License-Identifier: MIT */
/*
 * replay_test.c: analyze/window/wholemodel: random programs are written as recordings, in blocks of
 * random length, with clocks that are late. What comes out is what plain counting in the true order
 * gives.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/window/wholemodel.h"
#include "tests/unit/recording_builder.h"

enum { THREADS = 6, CONTEXTS = 36, LIVE = 100, EVENTS = 6000, POOL = 34, MAPPING = 35 };

struct block {
    struct event_block name;
    uint64_t size;
    uint32_t context;
};

/* A program as it ran, and what is to come out. */
struct program {
    unsigned threads;
    struct event_encoder *encoders[THREADS];
    uint64_t numbers[THREADS];
    uint64_t ticks[THREADS];
    struct event_block newest[THREADS];
    struct block live[LIVE];
    size_t live_count;
    struct recording_build build;

    uint64_t now; /* in events */
    uint64_t allocations, frees, bytes, freed_bytes, temporary, foreign;
    uint64_t held, maximum;
    uint64_t held_by[CONTEXTS], at_maximum[CONTEXTS];
};

static char path[] = "/tmp/memtrace-replay-XXXXXX";

static void add_nodes(struct recording_build *build) {
    struct memtrace_recording_node nodes[CONTEXTS];
    for (uint32_t id = 4; id < CONTEXTS; id++) {
        nodes[id] = (struct memtrace_recording_node){
            .frame = UINT64_C(1) << MEMTRACE_FRAME_MODULE_SHIFT | (0x1000 + id * 16),
            .parent = id == 4 ? 0 : 4 + (id - 5) / 2,
            .id = id};
    }
    nodes[POOL].frame = MEMTRACE_FRAME_POOL + 1;
    nodes[MAPPING].frame = MEMTRACE_FRAME_MAPPING;
    recording_build_nodes(build, &nodes[4], CONTEXTS - 4);
}

static void start_block(struct program *program, unsigned thread) {
    event_encoder_start(program->encoders[thread], thread + 2, program->numbers[thread] + 1);
}

static void start(struct program *program, unsigned threads) {
    *program = (struct program){.threads = threads};
    recording_build_header(&program->build);
    recording_build_program(&program->build, "/usr/bin/example");
    add_nodes(&program->build);
    for (unsigned thread = 0; thread < threads; thread++) {
        program->encoders[thread] = event_encoder_new(0);
        start_block(program, thread);
    }
}

static void flush(struct program *program, unsigned thread) {
    if (event_encoder_count(program->encoders[thread]) != 0) {
        recording_build_encoded(&program->build, program->encoders[thread], thread + 1);
        start_block(program, thread);
    }
}

static void write_down(struct program *program, unsigned thread, struct event *event) {
    uint64_t tick = program->now++ / 50;
    if (tick != 0 && rand() % 2) {
        tick--; /* a clock that was not looked at */
    }
    program->ticks[thread] = tick > program->ticks[thread] ? tick : program->ticks[thread];
    event->time_ns = program->ticks[thread] << MEMTRACE_TICK_SHIFT;
    assert_int_equal(event_encoder_add(program->encoders[thread], event), 0);
    if (rand() % 300 == 0 && program->build.count < BUILD_BLOCKS - 10) {
        flush(program, thread);
    }
}

static void count_end(struct program *program, unsigned thread, const struct block *block) {
    program->held_by[block->context] -= block->size;
    if (block->context == POOL) {
        return;
    }
    program->held -= block->size;
    program->frees++;
    program->freed_bytes += block->size;
    program->foreign += block->name.thread != thread + 2;
    program->temporary +=
        block->name.thread == thread + 2 && block->name.number == program->newest[thread].number;
}

static struct block take_any(struct program *program) {
    size_t i = rand() % 3 == 0 ? program->live_count - 1 : (size_t)rand() % program->live_count;
    struct block block = program->live[i];
    program->live[i] = program->live[--program->live_count];
    return block;
}

static void free_any(struct program *program, unsigned thread) {
    struct block block = take_any(program);
    struct event event = {.kind = EVENT_FREE, .block = block.name};
    count_end(program, thread, &block);
    write_down(program, thread, &event);
}

static void allocate(struct program *program, unsigned thread, bool resizes) {
    struct block block = {{++program->numbers[thread], thread + 2},
                          (uint64_t)(rand() % 10) * 100,
                          4 + (uint32_t)rand() % (MAPPING - 4)};
    struct event event = {.kind = EVENT_ALLOC, .block = block.name, .size = block.size};
    if (resizes) {
        struct block old = take_any(program);
        if (old.context == POOL) { /* stays in its pool */
            block.context = POOL;
        } else if (block.context == POOL) {
            block.context = 4;
        }
        event.old = old.name;
        count_end(program, thread, &old);
    }
    event.context = block.context;
    program->live[program->live_count++] = block;
    program->held_by[block.context] += block.size;
    if (block.context != POOL) {
        program->newest[thread] = block.name;
        program->allocations++;
        program->bytes += block.size;
        program->held += block.size;
    }
    if (program->held > program->maximum) {
        program->maximum = program->held;
        memcpy(program->at_maximum, program->held_by, sizeof program->held_by);
    }
    write_down(program, thread, &event);
}

static void run(struct program *program, unsigned threads, unsigned seed) {
    srand(seed);
    start(program, threads);
    for (int i = 0; i < EVENTS; i++) {
        unsigned thread = (unsigned)rand() % threads;
        bool is_full = program->live_count == LIVE;
        if (program->live_count != 0 && (is_full || rand() % 100 < 45)) {
            free_any(program, thread);
        } else {
            allocate(program, thread, program->live_count != 0 && rand() % 5 == 0);
        }
    }
    for (unsigned thread = 0; thread < threads; thread++) {
        flush(program, thread);
    }
}

static void end(struct program *program) {
    for (unsigned thread = 0; thread < program->threads; thread++) {
        event_encoder_free(program->encoders[thread]);
    }
    recording_build_free(&program->build);
}

static struct model *replay(const struct recording_build *build) {
    struct error error = {""};
    struct recording *recording;
    struct timeorder_parts parts;
    struct model *model;
    recording_build_write(build->bytes, build->size, path);
    recording = recording_open(path, &error);
    assert_non_null(recording);
    parts = (struct timeorder_parts){(const struct recording *const *)&recording, 1};
    model = model_replay(parts, NULL, &error);
    recording_close(recording);
    assert_non_null(model);
    return model;
}

static void check_counts(const struct program *program, const struct model *model) {
    const struct model_totals *totals = &model->totals;
    assert_string_equal(model->damage, "");
    assert_int_equal(totals->allocations, program->allocations);
    assert_int_equal(totals->total_bytes, program->bytes);
    assert_int_equal(totals->frees, program->frees);
    assert_int_equal(totals->freed_bytes, program->freed_bytes);
    assert_int_equal(totals->live_bytes, program->held);
    assert_int_equal(totals->temporary, program->temporary);
    assert_int_equal(model->recording.events, EVENTS);
    assert_int_equal(model->recording.foreign_frees, 0);
    for (uint32_t id = 4; id < MAPPING; id++) {
        const struct model_context *context = model_find(model, id);
        assert_int_equal(context != NULL ? context->live_bytes : 0, program->held_by[id]);
    }
}

static void one_thread_is_exact(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 20; seed++) {
        struct program program;
        struct model *model;
        run(&program, 1, seed);
        recording_build_index(&program.build);
        model = replay(&program.build);
        check_counts(&program, model);
        assert_true(model->recording.closed);
        assert_int_equal(model->totals.maximum_bytes, program.maximum);
        assert_int_equal(model->totals.maximum_error_bytes, 0);
        for (uint32_t id = 4; id < POOL; id++) {
            const struct model_context *context = model_find(model, id);
            assert_int_equal(context != NULL ? context->peak_bytes : 0, program.at_maximum[id]);
        }
        model_free(model);
        end(&program);
    }
}

static void several_threads(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 40; seed++) {
        struct program program;
        struct model *model;
        uint64_t distance;
        uint64_t foreign = 0;
        run(&program, 2 + seed % (THREADS - 1), seed);
        model = replay(&program.build);
        check_counts(&program, model);
        assert_false(model->recording.closed);
        distance = model->totals.maximum_bytes > program.maximum
                       ? model->totals.maximum_bytes - program.maximum
                       : program.maximum - model->totals.maximum_bytes;
        assert_true(distance <= model->totals.maximum_error_bytes);
        for (size_t i = 0; i < model->foreign_count; i++) {
            foreign += model->foreign[i].blocks;
        }
        assert_int_equal(foreign, program.foreign);
        assert_int_equal(model->thread_count, program.threads);
        model_free(model);
        end(&program);
    }
}

/* One thread allocates, the other frees at once, but believes that no time passes: each free still
 * waits for its allocation, and no allocation runs ahead of the frees. */
static void late_clock(void **state) {
    struct program program;
    struct model *model;
    (void)state;
    start(&program, 2);
    for (uint64_t i = 1; i <= 1000; i++) {
        struct event alloc = {.kind = EVENT_ALLOC,
                              .block = {.number = i, .thread = 2},
                              .size = 100,
                              .context = 5,
                              .time_ns = i / 10 << MEMTRACE_TICK_SHIFT};
        struct event freed = {.kind = EVENT_FREE, .block = alloc.block};
        assert_int_equal(event_encoder_add(program.encoders[0], &alloc), 0);
        assert_int_equal(event_encoder_add(program.encoders[1], &freed), 0);
    }
    flush(&program, 0);
    flush(&program, 1);
    model = replay(&program.build);
    assert_int_equal(model->totals.frees, 1000);
    assert_true(model->totals.maximum_bytes <= 10 * 100); /* a window's */
    assert_true(model->totals.maximum_bytes <= 100 + model->totals.maximum_error_bytes);
    model_free(model);
    end(&program);
}

/* One block of events is damaged: the rest is there, the sums still add up. */
static void damaged_block(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 20; seed++) {
        struct program program;
        struct model *model;
        const struct memtrace_index_entry *hit;
        uint64_t live = 0;
        run(&program, 3, seed);
        hit = &program.build.entries[3 + seed % (program.build.count - 3)];
        program.build.bytes[hit->offset + sizeof hit->block + hit->block.stored_size / 2] ^= 0x55;
        recording_build_index(&program.build);
        model = replay(&program.build);
        assert_true(model->damage[0] != '\0');
        assert_int_equal(model->recording.events, EVENTS - hit->block.items);
        assert_true(model->totals.frees <= model->totals.allocations);
        for (size_t i = 0; i < model->context_count; i++) {
            const struct model_context *context = &model->contexts[i];
            assert_true(context->frees <= context->allocations);
            live += context->class == MODEL_HEAP ? context->live_bytes : 0;
        }
        assert_int_equal(live, model->totals.live_bytes);
        model_free(model);
        end(&program);
    }
}

/* A free that stands in the file before its allocation, mappings, a mark, losses, samples, an
 * unknown context. */
static void the_rest(void **state) {
    struct program program;
    struct model *model;
    const struct memtrace_sample samples_taken[2] = {
        {.time_ns = 5 << MEMTRACE_TICK_SHIFT, .resident_bytes = 7},
        {.time_ns = UINT64_C(500) << MEMTRACE_TICK_SHIFT, .resident_bytes = 8}};
    struct event events[] = {
        {.kind = EVENT_MAP,
         .operation = MEMTRACE_MAP_MAP,
         .context = MAPPING,
         .address = 0x100000,
         .size = 10000},
        {.kind = EVENT_MAP, .operation = MEMTRACE_MAP_UNMAP, .address = 0x101000, .size = 4096},
        {.kind = EVENT_MARK, .operation = MEMTRACE_MARK_POINT, .text = "here", .text_size = 4},
        {.kind = EVENT_LOST, .lost_allocs = 3, .lost_frees = 2},
        {.kind = EVENT_FREE, .block = {.number = 77, .thread = 9}},
    };
    struct event alloc = {
        .kind = EVENT_ALLOC, .block = {.number = 1, .thread = 3}, .size = 50, .context = 9999};
    struct event other = {.kind = EVENT_FREE, .block = {.number = 1, .thread = 3}};
    (void)state;
    start(&program, 2);
    write_down(&program, 0, &other);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        write_down(&program, 0, &events[i]);
    }
    program.now = 5000;
    write_down(&program, 1, &alloc);
    flush(&program, 0);
    flush(&program, 1);
    recording_build_items(&program.build, MEMTRACE_BLOCK_SAMPLES, samples_taken,
                          sizeof samples_taken[0], 2);
    model = replay(&program.build);
    assert_int_equal(model->totals.allocations, 1);
    assert_int_equal(model->totals.frees, 1);
    assert_int_equal(model->totals.maximum_bytes, 50);
    assert_int_equal(model->recording.foreign_frees, 1);
    assert_int_equal(model->recording.lost_allocs, 3);
    assert_int_equal(model->totals.lost, 5);
    assert_int_equal(model->foreign_count, 1);
    assert_int_equal(model_find(model, MAPPING)->live_bytes, 8192);
    assert_int_equal(model_find(model, MAPPING)->live_blocks, 1);
    assert_int_equal(model->mark_count, 1);
    assert_string_equal(model->marks[0].name, "here");
    assert_int_equal(model->timeline[0].time_ns, 0);
    assert_int_equal(model->timeline[0].alloc_count, 0);
    for (size_t i = 1, samples = 0; i < model->timeline_count; i++) {
        const struct memtrace_point *point = &model->timeline[i];
        assert_true(point->time_ns > model->timeline[i - 1].time_ns);
        assert_int_equal(point->alloc_count, 1); /* its free was there by then */
        samples += samples < 2 && point->time_ns == samples_taken[samples].time_ns &&
                   point->resident_bytes == samples_taken[samples].resident_bytes;
        assert_true(i + 1 < model->timeline_count || samples == 2);
    }
    model_free(model);
    end(&program);
}

/* Marks come by time, those of one time in their order, each with its name. */
static void marks(void **state) {
    enum { MARKS = 300 };
    struct program program;
    struct model *model;
    size_t counts[3] = {0};
    (void)state;
    start(&program, 2);
    for (unsigned i = 0; i < MARKS; i++) {
        char text[32];
        struct event event = {.kind = EVENT_MARK,
                              .operation = MEMTRACE_MARK_POINT + i % 3,
                              .id = i,
                              .text = text,
                              .time_ns = (uint64_t)(i / 4) << MEMTRACE_TICK_SHIFT};
        snprintf(text, sizeof text, "mark %u", i % 7);
        event.text_size = i % 5 == 0 ? 0 : (uint32_t)strlen(text);
        assert_int_equal(event_encoder_add(program.encoders[i % 2], &event), 0);
    }
    flush(&program, 0);
    flush(&program, 1);
    model = replay(&program.build);
    assert_int_equal(model->mark_count, MARKS);
    assert_int_equal(model->mark_total, MARKS);
    for (size_t i = 0; i < MARKS; i++) {
        const struct model_mark *mark = &model->marks[i];
        char text[32];
        snprintf(text, sizeof text, "mark %u", (unsigned)(mark->id % 7));
        assert_int_equal(mark->time_ns, mark->id / 4 << MEMTRACE_TICK_SHIFT);
        assert_true(i == 0 || model->marks[i - 1].time_ns <= mark->time_ns);
        assert_int_equal(mark->thread, 2 + mark->id % 2);
        assert_int_equal(mark->what, MEMTRACE_MARK_POINT + mark->id % 3);
        assert_string_equal(mark->name, mark->id % 5 == 0 ? "" : text);
        counts[mark->id % 3]++;
    }
    assert_int_equal(counts[0], MARKS / 3);
    model_free(model);
    end(&program);
}

/* Sizes, times and numbers that no program has: sums wrap, and nothing else happens. */
static void impossible_sizes(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 10; seed++) {
        struct recording_build build = {0};
        struct model *model;
        recording_build_header(&build);
        recording_build_program(&build, "/usr/bin/example");
        recording_build_tree(&build);
        for (uint32_t thread = 2; thread < 5; thread++) {
            struct stream stream = stream_start(seed * 10 + thread, thread, 1);
            stream.wild = true;
            recording_build_events(&build, &stream, 500);
        }
        model = replay(&build);
        assert_int_equal(model->recording.events, 3 * 500);
        model_free(model);
        recording_build_free(&build);
    }
}

static int make_file(void **state) {
    int fd = mkstemp(path);
    (void)state;
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0 ? 0 : -1;
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

/* Pieces of one time without events are one; what lies within a longer one does not end it. */
static void gaps_are_joined(void **state) {
    static const struct memtrace_gap lost[] = {
        {500, 600, 1, 2}, {10, 20, 3, 0}, {0, 100, 5, 4}, {100, 110, 7, 1}, {601, 602, 9, 9}};
    static const struct memtrace_thinned thinned[] = {
        {30, 70, 64, 0}, {20, 50, 4096, 0}, {71, 80, 8, 0}};
    static const struct model_gap lost_joined[] = {
        {0, 110, 15, 5, 0}, {500, 600, 1, 2, 0}, {601, 602, 9, 9, 0}};
    static const struct model_gap thinned_joined[] = {{20, 70, 0, 0, 4096}, {71, 80, 0, 0, 8}};
    struct program program;
    struct model *model;
    (void)state;
    start(&program, 1);
    recording_build_items(&program.build, MEMTRACE_BLOCK_GAP, lost, sizeof lost[0], 5);
    recording_build_items(&program.build, MEMTRACE_BLOCK_THINNED, thinned, sizeof thinned[0], 3);
    model = replay(&program.build);
    end(&program);
    assert_int_equal(model->gap_count, 3);
    assert_memory_equal(model->gaps, lost_joined, sizeof lost_joined);
    assert_int_equal(model->thinned_count, 2);
    assert_memory_equal(model->thinned, thinned_joined, sizeof thinned_joined);
    model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_is_exact),
        cmocka_unit_test(several_threads),
        cmocka_unit_test(late_clock),
        cmocka_unit_test(damaged_block),
        cmocka_unit_test(the_rest),
        cmocka_unit_test(marks),
        cmocka_unit_test(impossible_sizes),
        cmocka_unit_test(gaps_are_joined),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
