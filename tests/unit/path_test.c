/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/path.c and step.h over stacks that are made for it: return addresses that
 * are no code, with rules that are put where a walk looks for them first. */
#define _GNU_SOURCE
#include "runtime/stack/guard.h"
#include "runtime/stack/remembered.h"

#include "tests/unit/walk_fixture.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS = 64 };

enum { PAGE_WORDS = STACK_PAGE / sizeof(uintptr_t) };

static _Alignas(STACK_PAGE) uintptr_t made[2 * PAGE_WORDS];

static uintptr_t pc_of(unsigned number) {
    return 0x100000 + number * 0x1000;
}

static void put_rule(unsigned number, struct rule rule) {
    size_t place = rule_cache_place(pc_of(number));
    union rule_word word = {.rule = rule};
    assert_true(walker.rules.place[place].pc == 0 || walker.rules.place[place].pc == pc_of(number));
    walker.rules.place[place].pc = pc_of(number);
    walker.rules.place[place].rule = word.word;
}

/* An empty stack of so many words, and rules for functions 0 to 7: each is called by what lies four
 * words further out. Function 7 was called by nobody. */
static void begin(unsigned words) {
    struct rule rule = {.kind = RULE_SP, .plain = 1, .cfa_offset = 4};
    walk_forget(&walker);
    assert_int_equal(walk_init(&walker, (uintptr_t)made, (uintptr_t)(made + words)), 0);
    for (unsigned i = 0; i < WORDS; i++) {
        made[i] = 0xbad0;
    }
    for (unsigned i = 0; i < 7; i++) {
        put_rule(i, rule);
    }
    put_rule(7, (struct rule){.kind = RULE_END});
}

static uint32_t walk(unsigned place, uintptr_t fp) {
    struct frame caller = {.pc = made[place], .slot = (uintptr_t)&made[place], .fp = fp};
    return walk_context(&world, &walker, caller).value;
}

/* The walk has met these functions, newest first. */
static void assert_met(unsigned count, const unsigned *numbers) {
    assert_int_equal(walker.remembered.count, count);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(remembered_pc(&walker.remembered.frame[count - 1 - i]), pc_of(numbers[i]));
    }
}

static void a_path_by_rules(void **state) {
    (void)state;
    begin(WORDS);
    made[0] = pc_of(0);
    made[4] = pc_of(1);
    made[8] = pc_of(7);
    assert_int_not_equal(walk(0, 0), 0);
    assert_met(3, (const unsigned[]){0, 1, 7});
}

/* A step that led to a guard is taken back, and gone again in the general way: what was known of
 * where the frame's fp lies is known as before. */
static void a_step_that_is_taken_back(void **state) {
    struct rule saves = {.kind = RULE_SP, .plain = 1, .cfa_offset = 4, .fp_offset = -2};
    uint32_t how[3];
    uint32_t context;
    (void)state;
    begin(WORDS);
    put_rule(0, saves);
    made[0] = pc_of(0);
    made[3] = 0x1234; /* the fp that function 0 saved */
    made[4] = pc_of(1);
    made[8] = pc_of(2);
    made[12] = pc_of(7);
    context = walk(0, 0);
    assert_met(4, (const unsigned[]){0, 1, 2, 7});
    for (unsigned i = 0; i < 3; i++) {
        how[i] = walker.remembered.frame[i].how & WALK_FP_MASK;
    }
    assert_int_equal(how[2], walk_fp_bits(-2));
    walker.remembered.count = 0;
    walker.last.pc = 0;
    memset(&walker.trails, 0, sizeof walker.trails);
    made[8] = guard_for(pc_of(2));
    assert_int_equal(walk(0, 0), context);
    assert_met(4, (const unsigned[]){0, 1, 2, 7});
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(walker.remembered.frame[i].how & WALK_FP_MASK, how[i]);
        assert_int_equal(walker.remembered.frame[i].fp, 0x1234);
    }
}

/* The same of a function with a frame word: only who steps in the general way may read it. */
static void a_word_before_a_guard(void **state) {
    struct rule has_word = {.kind = RULE_SP, .plain = 1, .cfa_offset = 4, .frame_word = 4};
    struct context_id parent =
        context_child(&tree, (struct context_id){0}, 0x777000, CONTEXT_INNER);
    uint32_t *word = (uint32_t *)(made + 5) - 4;
    uint32_t context;
    (void)state;
    begin(WORDS);
    rules.has_frame_words = 1;
    put_rule(0, has_word);
    made[0] = pc_of(0);
    made[4] = guard_for(pc_of(1));
    made[8] = pc_of(7);
    *word = parent.value;
    context = walk(0, 0);
    rules.has_frame_words = 0;
    assert_int_equal(context_read(&tree, (struct context_id){context}).parent, parent.value);
    assert_int_equal(context_read(&tree, (struct context_id){context}).frame, pc_of(0));
}

/* Where a return address is 0 the path ends, with the function that would return there. */
static void an_end_without_a_caller(void **state) {
    uint64_t lost;
    (void)state;
    begin(WORDS);
    made[0] = pc_of(0);
    made[4] = pc_of(1);
    made[8] = 0;
    lost = space->header->lost[MEMTRACE_LOST_FRAMES];
    walk(0, 0);
    assert_met(2, (const unsigned[]){0, 1});
    assert_int_equal(space->header->lost[MEMTRACE_LOST_FRAMES], lost);
}

/* A chain of frame pointers that goes back, stands still or is none ends the path. */
static void a_chain_that_leads_inwards(void **state) {
    const struct rule by_fp = {.kind = RULE_FP, .plain = 1, .cfa_offset = 2, .fp_offset = -2};
    const uintptr_t chains[] = {(uintptr_t)&made[8], (uintptr_t)&made[11], (uintptr_t)&made[15] + 1,
                                (uintptr_t)&made[10]};
    (void)state;
    for (unsigned i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        begin(WORDS);
        put_rule(0, by_fp);
        made[8] = (uintptr_t)&made[15];
        made[9] = pc_of(7);
        made[12] = pc_of(0);
        made[16] = pc_of(7);
        walk(12, chains[i]);
        assert_met(1, (const unsigned[]){0});
    }
    begin(WORDS); /* the very same slot, where the caller has the same frame pointer */
    put_rule(0, (struct rule){.kind = RULE_FP, .plain = 1, .cfa_offset = 2});
    made[12] = pc_of(0);
    walk(12, (uintptr_t)&made[11]);
    assert_met(1, (const unsigned[]){0});
    begin(WORDS);
    put_rule(0, by_fp);
    made[12] = pc_of(0);
    made[16] = pc_of(7);
    walk(12, (uintptr_t)&made[15]);
    assert_met(2, (const unsigned[]){0, 7});
}

/* What lies at the end of the stack and beyond is not the thread's own: others may write there, so
 * no guard is placed, and it counts as another stack. */
static void the_stack_has_an_end(void **state) {
    (void)state;
    for (unsigned words = 8; words <= 9; words++) {
        begin(words);
        made[0] = pc_of(0);
        made[4] = pc_of(1);
        made[8] = pc_of(2);
        made[12] = pc_of(7);
        walk(0, 0);
        assert_met(4, (const unsigned[]){0, 1, 2, 7});
        assert_int_equal((walker.remembered.frame[1].how & WALK_UNPATCHED) != 0, words == 8);
        assert_int_equal(walker.remembered.frame[2].how & WALK_UNPATCHED, 0);
    }
}

/* The first word beyond lies on a page that may go: what is there is not remembered. */
static void what_lies_beyond_the_end(void **state) {
    (void)state;
    for (unsigned words = PAGE_WORDS; words <= PAGE_WORDS + 1; words++) {
        begin(words);
        made[PAGE_WORDS - 8] = pc_of(0);
        made[PAGE_WORDS - 4] = pc_of(1);
        made[PAGE_WORDS] = pc_of(7);
        walk(PAGE_WORDS - 8, 0);
        assert_met(words == PAGE_WORDS ? 2 : 3, (const unsigned[]){0, 1, 7});
    }
}

/* Rules of a library: the runtime's own code, as which this program's counts, has no plain ones. */
static void rules_that_do_not_lead_out(void **state) {
    void *library = dlopen(MEMTRACE_BINARY_DIR "/tests/unit/odd_rules.so", RTLD_NOW);
    (void)state;
    assert_non_null(library);
    for (int words = 1; words >= -1; words--) {
        const char *name = words == 1 ? "leads_out" : words == 0 ? "stands_still" : "leads_inwards";
        uintptr_t start = (uintptr_t)dlsym(library, name);
        struct rule rule;
        assert_int_not_equal(start, 0);
        rule = rule_find(&rules, start + 4);
        assert_int_equal(rule.kind, RULE_SP);
        assert_int_equal(rule.cfa_offset, words);
        assert_int_equal(rule.plain, words > 0);
    }
    dlclose(library);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_by_rules),
        cmocka_unit_test(a_step_that_is_taken_back),
        cmocka_unit_test(a_word_before_a_guard),
        cmocka_unit_test(an_end_without_a_caller),
        cmocka_unit_test(a_chain_that_leads_inwards),
        cmocka_unit_test(the_stack_has_an_end),
        cmocka_unit_test(what_lies_beyond_the_end),
        cmocka_unit_test(rules_that_do_not_lead_out),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
