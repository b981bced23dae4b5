/* SPDX-License-Identifier: MIT */
/* interrupted.c: looking for signal frames. See interrupted.h. */
#include "runtime/stack/interrupted.h"

#include "runtime/stack/guard.h"

enum { MOST_FRAMES = 1 << 16 };

int interrupted_inside(struct rules *rules, struct stack_bounds stack, struct frame frame) {
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
