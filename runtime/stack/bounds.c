/* SPDX-License-Identifier: MIT */
/* bounds.c: what the kernel says of other stacks. See bounds.h. */
#include "runtime/stack/bounds.h"

#include "runtime/base/sys.h"
#include "runtime/machine/machine.h"

uint32_t stack_unmappings;

enum { FAR = 16 * STACK_PAGE };

static uintptr_t page_of(uintptr_t address) {
    return address & ~(uintptr_t)(STACK_PAGE - 1);
}

/* Whether nothing is missing from the page of `from` up to `to`. */
static int is_whole(uintptr_t from, uintptr_t to) {
    if (from >= to || to - from > FAR) {
        return 0;
    }
    for (uintptr_t page = page_of(from); page < to; page += STACK_PAGE) {
        if (!sys_readable((const void *)page)) {
            return 0;
        }
    }
    return 1;
}

COLD void stack_find_own(struct stack_bounds *stack, uintptr_t slot, const void *thread_local) {
    uintptr_t top = (uintptr_t) thread_local & ~(uintptr_t)(sizeof(uintptr_t) - 1);
    if (is_whole(slot, top)) {
        stack->low = page_of(slot);
        stack->high = top;
        stack->grows = 1;
    }
}

COLD void stack_extend_own(struct stack_bounds *stack, uintptr_t slot) {
    if (is_whole(slot, stack->low)) {
        stack->low = page_of(slot);
    }
}

COLD int stack_ask(struct stack_bounds *stack, uintptr_t address) {
    uintptr_t page = page_of(address);
    if (!sys_readable((const void *)address)) {
        return 0;
    }
    if (page == stack->there_end) {
        stack->there_end += STACK_PAGE;
    } else {
        stack->there = page;
        stack->there_end = page + STACK_PAGE;
    }
    return 1;
}

COLD int stack_is_called(uint64_t pc, uintptr_t slot) {
    return slot % (2 * sizeof(uintptr_t)) == sizeof(uintptr_t) && pc >> 63 == 0 &&
           pc > MACHINE_LONGEST_CALL &&
           sys_readable((const void *)(uintptr_t)(pc - MACHINE_LONGEST_CALL)) &&
           sys_readable((const void *)(uintptr_t)(pc - 1)) && machine_follows_call(pc);
}
