/* SPDX-License-Identifier: MIT */
/*
 * lives_test.c: analyze/replay/lives: what a small recording says of each block. That the sums of
 * lives are those of replays and views, random recordings show in view_test and selection_test.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/lives.h"
#include "analyze/window/wholemodel.h"
#include "tests/unit/recording_builder.h"

enum { MOST = 64, MAIN = 2, WORKER = 3, TICK = 1 << MEMTRACE_TICK_SHIFT };

static char path[] = "/tmp/memtrace-lives-XXXXXX";

/* ---- A recording by hand ---- */

struct script {
    struct recording_build build;
    struct event_encoder *encoder;
    uint32_t thread;
    uint64_t numbers[2]; /* of MAIN and WORKER */
};

static void begin_script(struct script *script) {
    *script = (struct script){.encoder = event_encoder_new(0)};
    recording_build_header(&script->build);
    recording_build_program(&script->build, "/usr/bin/example");
    recording_build_tree(&script->build);
}

static void begin_thread(struct script *script, uint32_t thread) {
    script->thread = thread;
    event_encoder_start(script->encoder, thread, script->numbers[thread - MAIN] + 1);
}

static void end_thread(struct script *script) {
    recording_build_encoded(&script->build, script->encoder, script->thread - 1);
}

static void add(struct script *script, struct event event) {
    assert_int_equal(event_encoder_add(script->encoder, &event), 0);
}

/* The new block's name. old.number 0: no reallocation. */
static struct event_block make(struct script *script, uint64_t time_ns, uint64_t size,
                               struct event_block old) {
    struct event_block block = {.number = ++script->numbers[script->thread - MAIN],
                                .thread = script->thread};
    add(script, (struct event){.kind = EVENT_ALLOC,
                               .time_ns = time_ns,
                               .context = 5,
                               .size = size,
                               .address = 0x1000 * block.number,
                               .block = block,
                               .old = old});
    return block;
}

static void release(struct script *script, uint64_t time_ns, struct event_block block,
                    uint32_t context) {
    add(script,
        (struct event){.kind = EVENT_FREE, .time_ns = time_ns, .block = block, .context = context});
}

static void say(struct script *script, uint64_t time_ns, enum memtrace_mark what, uint64_t id,
                const char *text) {
    add(script, (struct event){.kind = EVENT_MARK,
                               .time_ns = time_ns,
                               .operation = (uint8_t)what,
                               .id = id,
                               .text = text,
                               .text_size = (uint32_t)strlen(text)});
}

/* ---- What is told ---- */

struct told {
    struct life begun[MOST];
    struct life ended[MOST];
    size_t begun_count;
    size_t ended_count;
    size_t others;
    size_t stop_at; /* begin() ends the pass at this one; 0: never */
};

static int note_begin(void *context, const struct life *life) {
    struct told *told = context;
    told->begun[told->begun_count++] = *life;
    return told->begun_count == told->stop_at ? 5 : 0;
}

static int note_end(void *context, const struct life *life) {
    struct told *told = context;
    told->ended[told->ended_count++] = *life;
    return 0;
}

static int note_other(void *context, const struct timeorder_event *event) {
    struct told *told = context;
    assert_int_equal(event->event.kind, EVENT_MARK);
    told->others++;
    return 0;
}

static size_t node_count; /* of the model that was listened to last */

static int listen(struct script *script, struct told *told, struct scopes *scopes,
                  const struct replay_options *options) {
    const struct lives_visitor visitor = {.begin = note_begin,
                                          .end = note_end,
                                          .other = note_other,
                                          .context = told,
                                          .scopes = scopes};
    struct recording *recording;
    struct timeorder_parts parts = {(const struct recording *const *)&recording, 1};
    struct model *model;
    int result;
    recording_build_write(script->build.bytes, script->build.size, path);
    recording = recording_open(path, NULL);
    assert_non_null(recording);
    model = model_replay(parts, NULL, NULL);
    assert_non_null(model);
    node_count = model->node_count;
    result = lives_visit(parts, model, &visitor, options, NULL);
    model_free(model);
    recording_close(recording);
    return result;
}

static void end_script(struct script *script) {
    event_encoder_free(script->encoder);
    recording_build_free(&script->build);
}

static const struct event_block no_block;

/* ---- Cases ---- */

/* Whatever a file says of who freed a block: it is a node of the model. */
static void a_freeing_path_that_no_node_has(void **state) {
    static const uint32_t wrong[] = {7, 0xfffff0, (1 << MEMTRACE_CONTEXT_BITS) - 1};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct script script;
        struct told told = {0};
        begin_script(&script);
        begin_thread(&script, MAIN);
        release(&script, 7 * TICK, make(&script, 3 * TICK, 100, no_block), wrong[i]);
        end_thread(&script);
        assert_int_equal(listen(&script, &told, NULL, NULL), 0);
        assert_int_equal(told.ended_count, 1);
        assert_in_range(told.ended[0].death_context.node, 1, node_count - 1);
        end_script(&script);
    }
}

static void one_block(void **state) {
    struct script script;
    struct told told = {0};
    struct event_block block;
    (void)state;
    begin_script(&script);
    begin_thread(&script, MAIN);
    block = make(&script, 3 * TICK, 100, no_block);
    release(&script, 7 * TICK, block, 6);
    make(&script, 8 * TICK, 50, no_block);
    end_thread(&script);
    assert_int_equal(listen(&script, &told, NULL, NULL), 0);
    assert_int_equal(told.begun_count, 2);
    assert_int_equal(told.begun[0].death_ns, LIFE_ALIVE);
    assert_int_equal(told.begun[0].death_order, LIFE_ALIVE);
    assert_int_equal(told.ended_count, 2);
    assert_int_equal(told.ended[0].size, 100);
    assert_int_equal(told.ended[0].address, 0x1000);
    assert_int_equal(told.ended[0].birth_ns, 3 * TICK);
    assert_int_equal(told.ended[0].death_ns, 7 * TICK);
    assert_int_equal(told.ended[0].context, 5);
    assert_int_equal(told.ended[0].death_context.node, 6);
    assert_int_equal(told.ended[0].death_thread, MAIN);
    assert_true(told.ended[0].birth_order < told.ended[0].death_order);
    assert_true(told.ended[0].is_temporary);
    assert_int_equal(told.ended[0].chain_length, 1);
    assert_int_equal(told.ended[0].old_order, 0);
    assert_int_equal(told.ended[1].death_ns, LIFE_ALIVE); /* those that go on come last */
    assert_int_equal(life_bytes(&told.ended[1]), 50);
    end_script(&script);
}

static void a_chain(void **state) {
    struct script script;
    struct told told = {0};
    struct event_block block;
    (void)state;
    begin_script(&script);
    begin_thread(&script, MAIN);
    block = make(&script, TICK, 10, no_block);
    make(&script, TICK, 1, no_block);
    block = make(&script, 2 * TICK, 20, block);
    block = make(&script, 3 * TICK, 40, block);
    release(&script, 4 * TICK, block, 0);
    end_thread(&script);
    assert_int_equal(listen(&script, &told, NULL, NULL), 0);
    assert_int_equal(told.ended_count, 4);
    for (size_t i = 0; i < 3; i++) { /* in the order of their deaths, and so of the chain */
        const struct life *life = &told.ended[i];
        assert_int_equal(life->chain_length, i + 1);
        assert_int_equal(life->size, 10 << i);
        assert_int_equal(life->chain_first_size, 10);
        assert_int_equal(life->chain_birth_ns, TICK);
        assert_int_equal(life->chain.number, 1);
        assert_int_equal(life->chain_order, told.ended[0].birth_order);
        assert_int_equal(life->old_order, i == 0 ? 0 : told.ended[i - 1].birth_order);
        assert_true(life->is_reallocated == (i < 2));
        assert_true(i == 0 || life->birth_order == told.ended[i - 1].death_order);
    }
    assert_false(told.ended[0].is_temporary); /* another block came in between */
    assert_true(told.ended[1].is_temporary && told.ended[2].is_temporary);
    end_script(&script);
}

static void a_free_by_another_thread(void **state) {
    struct script script;
    struct told told = {0};
    struct event_block block;
    (void)state;
    begin_script(&script);
    begin_thread(&script, MAIN);
    block = make(&script, 5 * TICK, 100, no_block);
    end_thread(&script);
    begin_thread(&script, WORKER);
    release(&script, 2 * TICK, block, 0); /* its clock is late */
    release(&script, 3 * TICK, (struct event_block){.number = 77, .thread = MAIN}, 0);
    end_thread(&script);
    assert_int_equal(listen(&script, &told, NULL, NULL), 0);
    assert_int_equal(told.ended_count, 1);
    assert_int_equal(told.ended[0].block.thread, MAIN);
    assert_int_equal(told.ended[0].death_thread, WORKER);
    assert_int_equal(told.ended[0].death_ns, 5 * TICK); /* not before its birth */
    assert_true(told.ended[0].birth_order < told.ended[0].death_order);
    assert_false(told.ended[0].is_temporary);
    end_script(&script);
}

static void scopes_of_births(void **state) {
    struct script script;
    struct told told = {0};
    struct scopes *scopes = scopes_new();
    (void)state;
    begin_script(&script);
    begin_thread(&script, MAIN);
    make(&script, 0, 1, no_block);
    say(&script, 0, MEMTRACE_MARK_SCOPE_BEGIN, 1, "load");
    make(&script, 0, 2, no_block);
    say(&script, 0, MEMTRACE_MARK_SCOPE_BEGIN, 2, "parse");
    make(&script, 0, 3, no_block);
    say(&script, 0, MEMTRACE_MARK_SCOPE_END, 2, "");
    say(&script, 0, MEMTRACE_MARK_POINT, 0, "a mark");
    make(&script, 0, 4, no_block);
    say(&script, 0, MEMTRACE_MARK_SCOPE_END, 1, "");
    make(&script, 0, 5, no_block);
    end_thread(&script);
    begin_thread(&script, WORKER);
    make(&script, 0, 6, no_block);
    end_thread(&script);
    assert_int_equal(listen(&script, &told, scopes, NULL), 0);
    assert_int_equal(told.others, 5);
    for (size_t i = 0; i < told.ended_count; i++) {
        const struct life *life = &told.ended[i];
        bool loads = life->size >= 2 && life->size <= 4;
        assert_true(scopes_has(scopes, life->scope, "load") == loads);
        assert_true(scopes_has(scopes, life->scope, "parse") == (life->size == 3));
    }
    assert_int_equal(told.ended_count, 6);
    told = (struct told){0};
    assert_int_equal(listen(&script, &told, NULL, NULL), 0);
    assert_int_equal(told.ended[2].scope, SCOPES_NONE); /* nobody asked */
    end_script(&script);
}

static void it_can_end_early(void **state) {
    struct script script;
    struct told told = {.stop_at = 3};
    atomic_bool cancel = true;
    const struct replay_options cancelled = {.cancel = &cancel};
    (void)state;
    begin_script(&script);
    begin_thread(&script, MAIN);
    for (uint64_t i = 0; i < 10; i++) {
        make(&script, i * TICK, 10, no_block);
    }
    end_thread(&script);
    assert_int_equal(listen(&script, &told, NULL, NULL), 5);
    assert_int_equal(told.begun_count, 3);
    assert_int_equal(told.ended_count, 0);
    told = (struct told){0};
    assert_int_equal(listen(&script, &told, NULL, &cancelled), REPLAY_CANCELLED);
    assert_int_equal(told.ended_count, 0);
    end_script(&script);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_block),        cmocka_unit_test(a_freeing_path_that_no_node_has),
        cmocka_unit_test(a_chain),          cmocka_unit_test(a_free_by_another_thread),
        cmocka_unit_test(scopes_of_births), cmocka_unit_test(it_can_end_early),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
