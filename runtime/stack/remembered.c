/* SPDX-License-Identifier: MIT */
/* remembered.c: placing, doubting and removing guards. See remembered.h. */
#include "runtime/stack/remembered.h"

#include <string.h>

/* Puts the address back that the guard in this slot stands for, which may be signed: then it stays,
 * since nobody can sign what it stands for. */
static void remove_guard(uintptr_t slot, uintptr_t pc) {
    if (!MACHINE_MAY_SIGN || guard_is(stack_load(slot))) {
        *(uintptr_t *)slot = pc;
    }
}

/* Those that are remembered, as far as their frames are not newer than the one of this slot: below
 * it the stack is somebody else's. */
static void remove_guards(struct walker *walker, uintptr_t slot) {
    for (uint32_t i = 0; i < walker->remembered.count; i++) {
        struct walk_frame *it = &walker->remembered.frame[i];
        if (it->slot >= slot && guard_holds(it)) {
            remove_guard(it->slot, remembered_pc(it));
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
            remove_guard(next.slot, guard_see_through(next.pc));
        }
        next.pc = guard_see_through(next.pc & ~RULE_EXACT) | (next.pc & RULE_EXACT);
        frame = next;
    }
}

/* Another frame each time. */
static int guard_is_true(const struct walker *walker, uint32_t guarded) {
    uint32_t turn = walker->guarding.chance * UINT32_C(0x9e3779b9);
    const struct walk_frame *it = &walker->remembered.frame[((uint64_t)turn * (guarded + 1)) >> 32];
    return inputs_hold(it) || guard_holds(it) || (it->how & WALK_UNSURE) != 0;
}

COLD int remembered_check_guard(struct walk_world *world, struct walker *walker, uint32_t guarded) {
    if (guard_is_true(walker, guarded)) {
        return 0;
    }
    space_lost(world->space, MEMTRACE_LOST_GUARDS, 1);
    remove_guards(walker, 0); /* all are there */
    walker->guarding.is_off = 1;
    walker->remembered.count = 0;
    return -1;
}

COLD void remembered_forget(struct walker *walker, const struct rules *rules, uintptr_t slot) {
    walker->remembered.generation = LOAD_RELAXED(&rules->generation);
    remove_guards(walker, slot);
    walker->remembered.count = 0;
    memset(&walker->trails, 0, sizeof walker->trails);
    memset(&walker->rules, 0, sizeof walker->rules);
}

/* Whether the function that frame `it` has called returns by the word in its slot, and takes that
 * as it is: where calls push nothing it may be interrupted before it has saved it, or sign it. */
static int returns_by_slot(const struct walk_frame *it) {
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
        uintptr_t guard = (it->how & (WALK_UNSURE | WALK_UNPATCHED)) == 0 && returns_by_slot(it)
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
