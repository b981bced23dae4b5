/* SPDX-License-Identifier: MIT */
/* switch_test.c: switches that come in the middle of another one, as a handler's or another
 * thread's do. What malloc does and what the gate says must agree when all is over. */
#include "runtime/entry/recording_switch.h"
#include "runtime/entry/switch.h"

#include "runtime/entry/child.h"
#include "runtime/entry/event.h"
#include "runtime/entry/malloc.h"
#include "runtime/entry/preexisting.h"
#include "runtime/entry/real.h"
#include "runtime/process/settings.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* --- the rest of entry/, as far as switch.c calls it ------------------------------------------ */

struct runtime runtime;
unsigned char real_early[REAL_EARLY_BYTES];
static struct thread self = {.gate = GATE_OPEN};
THREAD_LOCAL struct thread *thread_self = &self;

enum { CALLS = 8 };
static enum malloc_way way;
static jmp_buf away; /* in preparing.calls 0, if .leaves: the thread that held the lock is gone */
static struct {
    int leaves;
    unsigned calls;                   /* of malloc_prepare() since the start */
    enum memtrace_mode inside[CALLS]; /* what is asked for during each of them */
    int depth, deepest;
} preparing;

void malloc_prepare(enum malloc_way to) {
    unsigned call = preparing.calls++;
    if (preparing.leaves) {
        longjmp(away, 1);
    }
    preparing.depth++;
    preparing.deepest = preparing.depth > preparing.deepest ? preparing.depth : preparing.deepest;
    if (call < CALLS && preparing.inside[call] != MEMTRACE_MODE_ON) {
        switch_to(preparing.inside[call], 0);
    }
    way = to;
    preparing.depth--;
}

void thread_join_all(void) {
}
int recording_switch_is_moving(void) {
    return 0;
}
void recording_switch_ask(void) {
}
void recording_switch_fork(void) {
}
void thread_stop_all(void) {
}
void thread_start_self(void) {
}
void preexisting_end(void) {
}
void thread_pass_through(int on) {
    (void)on;
}
void tick_ask(struct thread *thread) {
    (void)thread;
}
int child_grow(void) {
    return 0;
}
void runtime_periodic(uint64_t now_ns) {
    (void)now_ns;
}
void event_mark(enum memtrace_mark what, uint64_t id, const char *text, size_t size,
                struct frame caller) {
    (void)what;
    (void)id;
    (void)text;
    (void)size;
    (void)caller;
}

/* --- tests ------------------------------------------------------------------------------------ */

static struct memtrace_header header;

static void begin(void) {
    static const struct settings settings;
    runtime.space.header = &header;
    way = MALLOC_OFF;
    for (unsigned i = 0; i < CALLS; i++) {
        preparing.inside[i] = MEMTRACE_MODE_ON; /* nothing */
    }
    switch_start(&settings);
    preparing.calls = 0;
    preparing.deepest = 0;
}

static void assert_agree(uintptr_t gate) {
    enum malloc_way expected = gate == GATE_OPEN      ? MALLOC_EXACT
                               : gate == GATE_SAMPLED ? MALLOC_SAMPLED_AGAIN
                                                      : MALLOC_STOPPED;
    assert_int_equal(runtime.gate, gate);
    assert_int_equal(way, expected);
    assert_int_equal(header.mode, gate == GATE_OPEN      ? MEMTRACE_MODE_EXACT
                                  : gate == GATE_SAMPLED ? MEMTRACE_MODE_SAMPLED
                                                         : MEMTRACE_MODE_OFF);
}

static void test_one_by_one(void **state) {
    (void)state;
    begin();
    assert_agree(GATE_OPEN);
    switch_to(MEMTRACE_MODE_SAMPLED, 1 << 20);
    assert_agree(GATE_SAMPLED);
    assert_int_equal(header.sample_bytes, 1 << 20);
    switch_to(MEMTRACE_MODE_SAMPLED, 1 << 12); /* the gate stays, the header tells */
    assert_int_equal(header.sample_bytes, 1 << 12);
    switch_off();
    assert_agree(GATE_STOPPED);
    switch_sample(0); /* what is off stays off */
    assert_agree(GATE_STOPPED);
    switch_on();
    assert_agree(GATE_OPEN);
}

/* Without a mean: that which was used last, else what the settings say, else the usual one. */
static void test_mean_is_remembered(void **state) {
    (void)state;
    header.sample_bytes = 0;
    begin();
    switch_to(MEMTRACE_MODE_SAMPLED, 0);
    assert_int_equal(header.sample_bytes, 512 << 10);
    header.sample_bytes = 0;
    runtime.settings.recording.sample_bytes = 3 << 20;
    switch_to(MEMTRACE_MODE_EXACT, 0);
    switch_to(MEMTRACE_MODE_SAMPLED, 0);
    assert_int_equal(header.sample_bytes, 3 << 20);
    switch_to(MEMTRACE_MODE_SAMPLED, 1 << 20);
    switch_to(MEMTRACE_MODE_EXACT, 0);
    assert_agree(GATE_OPEN);
    assert_int_equal(runtime.sample_bytes, 0);
    switch_to(MEMTRACE_MODE_SAMPLED, 0);
    assert_agree(GATE_SAMPLED);
    assert_int_equal(runtime.sample_bytes, 1 << 20);
    assert_int_equal(header.sample_bytes, 1 << 20);
    runtime.settings.recording.sample_bytes = 0;
}

static void test_inside_another(void **state) {
    (void)state;
    begin();
    preparing.inside[0] = MEMTRACE_MODE_OFF;
    preparing.inside[1] = MEMTRACE_MODE_SAMPLED;
    switch_to(MEMTRACE_MODE_SAMPLED, 1 << 20);
    assert_agree(GATE_SAMPLED);
    assert_int_equal(preparing.deepest, 1); /* never two at a time */
}

static void test_every_order(void **state) {
    static const enum memtrace_mode modes[] = {MEMTRACE_MODE_EXACT, MEMTRACE_MODE_SAMPLED,
                                               MEMTRACE_MODE_OFF, MEMTRACE_MODE_ON};
    (void)state;
    for (unsigned order = 0; order < 256; order++) {
        begin();
        for (unsigned i = 0; i < 3; i++) {
            preparing.inside[i] = modes[order >> (2 * i) & 3];
        }
        switch_to(modes[order >> 6], 0);
        assert_agree(runtime.gate);
        assert_true(preparing.deepest <= 1);
    }
}

/* The lock may be another thread's of before the fork. */
static void test_after_fork(void **state) {
    (void)state;
    begin();
    preparing.leaves = 1;
    if (setjmp(away) == 0) {
        switch_to(MEMTRACE_MODE_SAMPLED, 0);
    }
    preparing.leaves = 0;
    switch_fork();
    switch_off();
    assert_agree(GATE_STOPPED);
    runtime.gate = GATE_NONE; /* past the end */
    switch_on();
    assert_int_equal(runtime.gate, GATE_NONE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_by_one),     cmocka_unit_test(test_mean_is_remembered),
        cmocka_unit_test(test_inside_another), cmocka_unit_test(test_every_order),
        cmocka_unit_test(test_after_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
