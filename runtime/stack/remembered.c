/* SPDX-License-Identifier: MIT */
/* remembered.c: guards: which stands for what, placing, doubting and removing them. See guard.h and
 * remembered.h. */
#include "runtime/stack/remembered.h"

#include <string.h>

enum { PROBES = 8, NEAR_PROBES = 4, NEAR_GUARDS = MEMTRACE_PAGE_SIZE / sizeof(uintptr_t) };

MACHINE_GUARD_TABLE __attribute__((aligned(MEMTRACE_PAGE_SIZE)))
uintptr_t guard_table[MACHINE_GUARD_COUNT];

/* The guard for pc, which stands for it or is free. 0: none of these. A place once taken is never
 * given back, so that looking and taking need no lock. */
INLINE uintptr_t guard_take(uintptr_t pc, size_t first, size_t probes, size_t count) {
    for (size_t probe = 0; probe < probes; probe++) {
        size_t at = (first + probe) % count;
        uintptr_t known = LOAD_RELAXED(&guard_table[at]);
        if (known == 0 && __atomic_compare_exchange_n(&guard_table[at], &known, pc, 0,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            known = pc;
        }
        if (known == pc) {
            return (uintptr_t)memtrace_guard + at * MACHINE_GUARD_CELL;
        }
    }
    return 0;
}

/* The first few hundred are beside each other: most programs need no more, and what a forked child
 * writes and runs of them is a page or two. */
uintptr_t guard_for(uintptr_t pc) {
    size_t first = (pc * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
    uintptr_t guard =
        MACHINE_GUARD_COUNT > NEAR_GUARDS ? guard_take(pc, first, NEAR_PROBES, NEAR_GUARDS) : 0;
    return guard != 0 ? guard : guard_take(pc, first, PROBES, MACHINE_GUARD_COUNT);
}

/* Puts the address back that the guard in this slot stands for, which may be signed: then it stays,
 * since nobody can sign what it stands for. */
static void remembered_remove_guard(uintptr_t slot, uintptr_t pc) {
    if (!MACHINE_MAY_SIGN || guard_is(stack_load(slot))) {
        *(uintptr_t *)slot = pc;
    }
}

/* Those that are remembered, as far as their frames are not newer than the one of this slot: below
 * it the stack is somebody else's. */
static void remembered_remove_guards(struct walker *walker, uintptr_t slot) {
    for (uint32_t i = 0; i < walker->remembered.count; i++) {
        struct walk_frame *it = &walker->remembered.frame[i];
        if (it->slot >= slot && guard_holds(it)) {
            remembered_remove_guard(it->slot, remembered_pc(it));
        }
        it->how &= ~(uint32_t)WALK_GUARDED;
    }
}

void walk_remove_guards(struct walk_world *world, struct stack_bounds stack, struct frame frame) {
    struct frame next;
    enum step how;
    stack_begin(&stack, frame.slot);
    while ((how = step(world->rules, &stack, rule_find(world->rules, frame.pc), &frame, &next)) <
               STEP_END &&
           next.pc != 0) {
        if (guard_is(next.pc) && (MACHINE_CALL_PUSHES || how == STEP_SURE)) {
            remembered_remove_guard(next.slot, guard_see_through(next.pc));
        }
        next.pc = guard_see_through(next.pc & ~RULE_EXACT) | (next.pc & RULE_EXACT);
        frame = next;
    }
}

int interrupted_inside(struct rules *rules, struct stack_bounds stack, struct frame frame) {
    enum { MOST_FRAMES = 1 << 16 };
    stack_begin(&stack, frame.slot);
    for (int count = 0; count < MOST_FRAMES && frame.pc != 0; count++) {
        struct rule rule = rule_find(rules, frame.pc);
        struct frame next;
        if ((frame.pc & RULE_EXACT) != 0 && rule.hidden) {
            return 1;
        }
        if (step(rules, &stack, rule, &frame, &next) >= STEP_END) {
            return 0;
        }
        next.pc = guard_see_through(next.pc & ~RULE_EXACT) | (next.pc & RULE_EXACT);
        frame = next;
    }
    return 0;
}

/* Another frame each time. */
static int remembered_guard_is_true(const struct walker *walker, uint32_t guarded) {
    uint32_t turn = walker->guarding.chance * UINT32_C(0x9e3779b9);
    const struct walk_frame *it = &walker->remembered.frame[((uint64_t)turn * (guarded + 1)) >> 32];
    return inputs_hold(it) || guard_holds(it) || (it->how & WALK_UNSURE) != 0;
}

COLD int remembered_check_guard(struct walk_world *world, struct walker *walker, uint32_t guarded) {
    if (remembered_guard_is_true(walker, guarded)) {
        return 0;
    }
    space_lost(world->space, MEMTRACE_LOST_GUARDS, 1);
    remembered_remove_guards(walker, 0); /* all are there */
    walker->guarding.is_off = 1;
    walker->remembered.count = 0;
    return -1;
}

COLD void remembered_forget(struct walker *walker, const struct rules *rules, uintptr_t slot) {
    walker->remembered.generation = LOAD_RELAXED(&rules->generation);
    remembered_remove_guards(walker, slot);
    walker->remembered.count = 0;
    memset(&walker->trails, 0, sizeof walker->trails);
    memset(&walker->rules, 0, sizeof walker->rules);
}

/* Whether the function that frame `it` has called returns by the word in its slot, and takes that
 * as it is: where calls push nothing it may be interrupted before it has saved it, or sign it. */
static int remembered_returns_by_slot(const struct walk_frame *it) {
    const struct walk_frame *called = &it[1];
    return MACHINE_CALL_PUSHES ||
           ((called->code & RULE_EXACT) == 0 && (called->how & WALK_SIGNED) == 0 &&
            guard_see_through(stack_load(it->slot)) == remembered_pc(it));
}

/* In the middle of what had to be compared: how long frames live there need not be known, since
 * guards that live shorter than they are worth are the newest ones, and half as far from the next
 * each. Newer than a frame that could not be known again. */
COLD void remembered_place_guard(struct walker *walker) {
    struct guarding *guarding = &walker->guarding;
    uint32_t newest = walker->remembered.count - 1;
    uint32_t i = newest - (newest - guarding->voucher) / 2;
    guarding->compared = -GUARD_WAIT;
    if (guarding->unsure > newest) {
        guarding->unsure = 0; /* that frame is gone */
    }
    for (i = i < guarding->unsure ? guarding->unsure : i; i < newest; i++) {
        struct walk_frame *it = &walker->remembered.frame[i];
        uintptr_t guard =
            (it->how & (WALK_UNSURE | WALK_UNPATCHED)) == 0 && remembered_returns_by_slot(it)
                ? guard_for(remembered_pc(it))
                : 0;
        if (guard != 0) {
            guarding->compared = 0;
            it->how |= WALK_GUARDED;
            STORE_RELAXED((uintptr_t *)it->slot, guard);
            break;
        }
    }
    guarding->unsure = 0;
}
