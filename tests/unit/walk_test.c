/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/walk.c and rule.c: the same frames as glibc's backtrace(), on every walk.
 * Frames of this program count as the runtime's own, which contexts leave out; what a walk met is
 * seen in what it remembers. libc's frames (qsort's) make the contexts. */
#define _GNU_SOURCE
#include "runtime/stack/remembered.h"

#include "tests/unit/walk_fixture.h"

#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOINLINE __attribute__((noinline))
/* Keeps the call above it from becoming a jump, so that its frame stays. */
#define STAY() __asm__ volatile("" ::: "memory")

enum { MOST = 20000 };

static void *expected[MOST];

static struct trails kept;

static void forget_trails(void) {
    kept = walker.trails;
    memset(&walker.trails, 0, sizeof walker.trails);
}

/* Walks, compares with backtrace(), returns the context: the same by a trail, if there is one, as
 * by looking at each frame. */
static NOINLINE uint32_t check(void) {
    const uintptr_t *frame = __builtin_frame_address(0);
    struct frame caller = {.pc = frame[1], .slot = (uintptr_t)&frame[1], .fp = frame[0]};
    uint32_t context = walk_context(&world, &walker, caller).value;
    int count = backtrace(expected, MOST);
    int first = 0;
    forget_trails();
    assert_int_equal(walk_context(&world, &walker, caller).value, context);
    while (first < count && (uintptr_t)expected[first] != caller.pc) {
        first++;
    }
    assert_int_equal(walker.remembered.count, count - first);
    for (int i = first; i < count; i++) {
        uintptr_t pc = remembered_pc(&walker.remembered.frame[count - 1 - i]);
        assert_int_equal(pc, (uintptr_t)expected[i]);
    }
    /* And again: recognised, not walked. */
    assert_int_equal(walk_context(&world, &walker, caller).value, context);
    assert_int_equal(walker.remembered.count, count - first);
    walker.trails = kept;
    return context;
}

static NOINLINE uint32_t recurse(unsigned depth) {
    uint32_t context = depth == 0 ? check() : recurse(depth - 1);
    STAY();
    return context;
}

static void equals_backtrace(void **state) {
    (void)state;
    assert_int_not_equal(check(), 0); /* __libc_start_main and its caller */
    for (unsigned depth = 0; depth < 50; depth++) {
        recurse(depth);
    }
    for (unsigned depth = 50; depth-- > 0;) {
        recurse(depth);
    }
}

static void deep(void **state) {
    (void)state;
    recurse(10000);
    recurse(3);
}

static NOINLINE uint32_t one_way(unsigned depth) {
    volatile char room[64];
    uint32_t context;
    room[0] = 1;
    context = recurse(depth) + (uint32_t)(room[0] - 1);
    STAY();
    return context;
}

static NOINLINE uint32_t other_way(unsigned depth) {
    volatile char room[64];
    uint32_t context;
    room[0] = 2;
    context = recurse(depth) + (uint32_t)(room[0] - 2);
    STAY();
    return context;
}

/* The inner frames lie where they lay, only an outer one was exchanged. */
static void changed_frames(void **state) {
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        one_way(i % 5);
        other_way(i % 5);
    }
}

static unsigned levels;
static uint32_t found;

static int through_libc(const void *a, const void *b) {
    int pair[2] = {2, 1};
    (void)a;
    (void)b;
    if (found != 0) {
        return 0; /* sanitizers compare more than once */
    }
    if (levels-- == 0) {
        found = check();
    } else {
        qsort(pair, 2, sizeof pair[0], through_libc);
    }
    STAY();
    return 0;
}

static NOINLINE uint32_t context_at(unsigned depth) {
    int pair[2] = {2, 1};
    levels = depth;
    found = 0;
    qsort(pair, 2, sizeof pair[0], through_libc);
    STAY();
    return found;
}

static unsigned path_length(uint32_t id) {
    unsigned length = 0;
    for (; id != 0; id = context_read(&tree, (struct context_id){id}).parent) {
        length++;
    }
    return length;
}

static void same_path_same_context(void **state) {
    uint32_t context[20];
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        context[i] = context_at(i);
        assert_true(i == 0 || path_length(context[i]) > path_length(context[i - 1]));
    }
    for (unsigned i = 20; i-- > 0;) {
        assert_int_equal(context_at(i), context[i]);
    }
}

static volatile sig_atomic_t handled;

static void handler(int number) {
    (void)number;
    check();
    handled++;
}

static void through_a_signal(void **state) {
    struct sigaction action = {.sa_handler = handler};
    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(raise(SIGUSR1), 0);
        recurse(3);
    }
    assert_int_equal(handled, 3);
}

static NOINLINE uint32_t walk_here(void) {
    const uintptr_t *frame = __builtin_frame_address(0);
    struct frame caller = {.pc = frame[1], .slot = (uintptr_t)&frame[1], .fp = frame[0]};
    memset(&walker.trails, 0, sizeof walker.trails);
    return walk_context(&world, &walker, caller).value;
}

/* A remembered frame with a plain rule that calls such a one: in libc, or the test library. */
static uint32_t index_within_libraries(void) {
    const struct walk_frame *frame = walker.remembered.frame;
    uint32_t i = walker.remembered.count - 1;
    while (i > 1 && ((frame[i].how | frame[i + 1].how) & WALK_UNPATCHED) != 0) {
        i--;
    }
    assert_int_equal((frame[i].how | frame[i + 1].how) & WALK_UNPATCHED, 0);
    return i;
}

static int guard_rounds;

/* Frames of libraries, a guard among them that is new, known, known as the newest, remembered for
 * another call that returns by that slot, and gone: the same path each time. */
static int walk_over_a_guard(const void *a, const void *b) {
    uint32_t context = 0, count = 0, i = 0;
    uint64_t code[64];
    uint32_t fp_bits[64];
    (void)a;
    (void)b;
    for (; guard_rounds < 6; guard_rounds++) {
        const struct walk_frame *it;
        uint32_t now;
        if (guard_rounds == 1) {
            *(uintptr_t *)walker.remembered.frame[i].slot =
                guard_for((uintptr_t)code[i] << 16 >> 16);
        } else if (guard_rounds == 5) {
            *(uintptr_t *)walker.remembered.frame[i].slot = (uintptr_t)code[i] << 16 >> 16;
        }
        walker.remembered.count = guard_rounds < 2 ? 0 : guard_rounds == 2 ? count - 1 : i + 1;
        walker.remembered.frame[i].code ^= guard_rounds == 4 ? 16 : 0;
        now = walk_here();
        it = walker.remembered.frame;
        if (guard_rounds == 0) {
            context = now;
            count = walker.remembered.count;
            assert_uint_in_range(count, 4, 64);
            i = index_within_libraries();
        }
        assert_int_equal(now, context);
        assert_int_equal(walker.remembered.count, count);
        for (uint32_t k = 0; k < count; k++) {
            code[k] = guard_rounds == 0 ? it[k].code : code[k];
            assert_int_equal(it[k].code, code[k]);
            fp_bits[k] = guard_rounds == 0 ? it[k].how & WALK_FP_MASK : fp_bits[k];
            assert_int_equal(it[k].how & WALK_FP_MASK, fp_bits[k]);
        }
        assert_int_equal((it[i].how & WALK_GUARDED) != 0, guard_rounds != 0);
    }
    return 0;
}

static void a_guard_is_seen_through_and_known_again(void **state) {
    int items[64] = {0};
    (void)state;
    guard_rounds = 0;
    qsort(items, 64, sizeof items[0], walk_over_a_guard);
    assert_int_equal(guard_rounds, 6);
}

static void rules_are_kept_and_forgotten(void **state) {
    uintptr_t pc = (uintptr_t)check + 4;
    struct rule first = rule_find(&rules, pc);
    size_t count = rules.count;
    struct rule again = rule_find(&rules, pc);
    (void)state;
    assert_memory_equal(&first, &again, sizeof first);
    assert_int_equal(rules.count, count);
    for (uintptr_t i = 0; i < 3000; i++) { /* grows */
        rule_find(&rules, (uintptr_t)qsort + i);
    }
    again = rule_find(&rules, pc);
    assert_memory_equal(&first, &again, sizeof first);
    rule_forget(&rules, pc, pc + 1);
    again = rule_find(&rules, pc);
    assert_memory_equal(&first, &again, sizeof first);
    assert_int_equal(rule_find(&rules, 0x10).kind, RULE_UNKNOWN);
}

/* Of another thread's stack nothing is left: its addresses may be unmapped now. */
static void serves_another_thread(void **state) {
    static struct walker other;
    struct walk_frame *frames;
    (void)state;
    assert_int_equal(walk_init(&other, 4096, 8192), 0);
    frames = other.remembered.frame;
    other.last.pc = 1;
    other.remembered.count = 5;
    other.remembered.base_index = BASE_UNKNOWN;
    other.guarding.is_off = 1;
    other.guarding.unsure = 3;
    other.trails.set[TRAIL_SETS - 1].kept = 1;
    other.trails.way[TRAIL_SETS - 1][TRAIL_WAYS - 1].from.pc = 1;
    walk_forget(&other);
    assert_int_equal(walk_init(&other, 40960, 81920), 0);
    assert_ptr_equal(other.remembered.frame, frames);
    assert_int_equal(other.stack.low, 40960);
    assert_int_equal(other.stack.high, 81920);
    assert_int_equal(other.last.pc, 0);
    assert_int_equal(other.remembered.count, 0);
    assert_int_equal(other.remembered.base_index, BASE_OUTERMOST);
    assert_int_equal(other.guarding.is_off, 0);
    assert_int_equal(other.guarding.unsure, 0);
    assert_int_equal(other.trails.way[TRAIL_SETS - 1][TRAIL_WAYS - 1].from.pc, 0);
    assert_int_equal(other.trails.set[TRAIL_SETS - 1].kept, 0);
    walk_free(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_another_thread),
        cmocka_unit_test(equals_backtrace),
        cmocka_unit_test(deep),
        cmocka_unit_test(changed_frames),
        cmocka_unit_test(same_path_same_context),
        cmocka_unit_test(through_a_signal),
        cmocka_unit_test(a_guard_is_seen_through_and_known_again),
        cmocka_unit_test(rules_are_kept_and_forgotten),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
