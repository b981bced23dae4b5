/* SPDX-License-Identifier: MIT */
/*
 * bounds.h: which words of a stack a walk may read.
 *
 * Words of the thread's own stack above the present frame can always be read. Of any other stack (a
 * fiber's, a signal stack) only the page that the stack pointer is in is known to be there, since a
 * call has just written to it. For each further page the kernel is asked, once a walk: nothing that
 * it answered earlier is believed, the stack may have been unmapped since, or another, smaller one
 * may be where it was.
 */
#ifndef RUNTIME_STACK_BOUNDS_H
#define RUNTIME_STACK_BOUNDS_H

#include "runtime/base/compiler.h"

#include <stdint.h>

enum { STACK_PAGE = 4096 }; /* on x86-64; elsewhere a page is this or more */

struct stack_bounds {
    uintptr_t low, high; /* of the thread's own; high 0: not known */
    uintptr_t entry;     /* where the kernel set the stack pointer at the start; 0: elsewhere */
    uintptr_t there, there_end; /* pages elsewhere that the present walk may read */
    int grows; /* the thread's own stack goes on below `low`, nobody told how far */
};

INLINE uintptr_t stack_load(uintptr_t address) {
    return *(const uintptr_t *)address;
}

INLINE int stack_holds(const struct stack_bounds *stack, uintptr_t address) {
    return address >= stack->low && address < stack->high;
}

/* The stack of a thread that nobody told of (thrd_create, timers), which runs at `slot`: as the C
 * library keeps a thread's static storage at the top of its stack, the memory between the two, if
 * there is no gap and it is not far. Else the thread's own stack stays unknown. */
void stack_find_own(struct stack_bounds *stack, uintptr_t slot, const void *thread_local);
/* The same stack further down, if that is where this slot lies. */
void stack_extend_own(struct stack_bounds *stack, uintptr_t slot);

/* A walk starts at this slot, which holds the return address of a function that has not returned.
 */
INLINE void stack_begin(struct stack_bounds *stack, uintptr_t slot) {
    if (UNLIKELY(stack->grows) && slot < stack->low) {
        stack_extend_own(stack, slot);
    }
    stack->there = slot & ~(uintptr_t)(STACK_PAGE - 1);
    stack->there_end = stack->there + STACK_PAGE;
}

/* Asks the kernel for the page of this address. */
int stack_ask(struct stack_bounds *stack, uintptr_t address);

INLINE int stack_can_read(struct stack_bounds *stack, uintptr_t address) {
    return address % sizeof(uintptr_t) == 0 &&
           (LIKELY(stack_holds(stack, address)) ||
            (address >= stack->there && address < stack->there_end) || stack_ask(stack, address));
}

/* Whether a frame that is not on the thread's own stack may be remembered: then the word in its
 * slot is read without asking where all newer frames are what they were. These are the frames of
 * functions that go on, so what they wrote themselves is there; but the return slot of the
 * outermost function of a stack was perhaps written by nobody, and begins the page after the stack.
 * Not where slots are aligned as the ABI has it: then the word before it, in the same page, is the
 * function's own. */
INLINE int stack_is_aligned(uintptr_t slot) {
    return slot % (2 * sizeof(uintptr_t)) == sizeof(uintptr_t);
}

#endif
