/* SPDX-License-Identifier: MIT */
/* remembered.c: placing, doubting and removing guards. See remembered.h. */
#include "runtime/stack/remembered.h"

/* Those that are remembered, as far as their frames are not newer than the one of this slot: below
 * it the stack is somebody else's. */
static void remove_guards(struct walker *walker, uintptr_t slot) {
    for (uint32_t i = 0; i < walker->remembered_count; i++) {
        struct walk_frame *it = &walker->remembered[i];
        if (it->frame.slot >= slot && guard_holds(it)) {
            *(uintptr_t *)it->frame.slot = it->frame.pc;
        }
        it->guard = 0;
    }
}

void walk_remove_guards(struct walk_world *world, struct stack_bounds stack, struct frame frame) {
    struct frame next;
    stack_begin(&stack, frame.slot);
    while (step(world->rules, &stack, rule_find(world->rules, frame.pc), &frame, &next) <
               STEP_END &&
           next.pc != 0) {
        if (guard_is(next.pc)) {
            next.pc = guard_see_through(next.pc);
            *(uintptr_t *)next.slot = next.pc;
        }
        next.pc = guard_see_through(next.pc & ~RULE_EXACT) | (next.pc & RULE_EXACT);
        frame = next;
    }
}

COLD int remembered_guard_is_true(const struct walker *walker, uint32_t guarded) {
    uint32_t turn = walker->chance * UINT32_C(0x9e3779b9);
    const struct walk_frame *it = &walker->remembered[((uint64_t)turn * (guarded + 1)) >> 32];
    return inputs_hold(it, 0) || guard_holds(it) || (it->flags & WALK_UNSURE) != 0;
}

COLD void remembered_give_up_guards(struct walk_world *world, struct walker *walker) {
    space_lost(world->space, MEMTRACE_LOST_GUARDS, 1);
    remove_guards(walker, 0); /* all are there */
    walker->guards_off = 1;
    walker->remembered_count = 0;
}

COLD void remembered_forget(struct walker *walker, const struct rules *rules, uintptr_t slot) {
    walker->generation = LOAD_RELAXED(&rules->generation);
    remove_guards(walker, slot);
    walker->remembered_count = 0;
}

/* In the middle of what had to be compared: how long frames live there need not be known, since
 * guards that live shorter than they are worth are the newest ones, and half as far from the next
 * each. Newer than a frame that could not be known again. */
COLD void remembered_place_guard(struct walker *walker) {
    uint32_t newest = walker->remembered_count - 1;
    uint32_t i = newest - (newest - walker->vouched) / 2;
    walker->compared = -GUARD_WAIT;
    if (walker->unsure > newest) {
        walker->unsure = 0; /* that frame is gone */
    }
    for (i = i < walker->unsure ? walker->unsure : i; i < newest; i++) {
        struct walk_frame *it = &walker->remembered[i];
        uintptr_t guard = (it->flags & (WALK_UNSURE | WALK_ENTRY | WALK_UNPATCHED)) == 0
                              ? guard_for(it->frame.pc)
                              : 0;
        if (guard != 0) {
            walker->compared = 0;
            it->guard = guard_number(guard);
            STORE_RELAXED((uintptr_t *)it->frame.slot, guard);
            break;
        }
    }
    walker->unsure = 0;
}
