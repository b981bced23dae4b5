/* SPDX-License-Identifier: MIT */
/*
 * bounds.h: which words of a stack may be read.
 *
 * Words of the thread's own stack above the present frame can always be read. Of any other stack (a
 * fiber's, a signal stack) only the page that the stack pointer is in is known to be there, since a
 * call has just written to it.
 *
 * - A walk asks the kernel for each further page, once: nothing that it answered earlier is
 *   believed, a smaller stack may be where one was.
 * - A remembered word is read only where all newer frames are what they were. Then it belongs to a
 *   function that goes on, and the words of such a function are there. What need not be there is
 *   what lies beyond the outermost function of a stack, which nobody called: what was in its return
 *   slot by chance may have looked like code, and been followed. So where a remembered frame begins
 *   on another page than the next newer one, the code of that one must follow a call, its slot be
 *   aligned as calls leave it (then the word before it, in the same page, is the function's own),
 *   and the program must not have unmapped anything since the kernel was asked.
 */
#ifndef RUNTIME_STACK_BOUNDS_H
#define RUNTIME_STACK_BOUNDS_H

#include "runtime/base/compiler.h"

#include <stdint.h>

enum { STACK_PAGE = 4096 }; /* on x86-64; elsewhere a page is this or more */

struct stack_bounds {
    uintptr_t low, high; /* of the thread's own; high 0: not known */
    uintptr_t entry;     /* where the kernel set the stack pointer at the start; 0: elsewhere */
    uintptr_t there, there_end; /* what the present walk may read elsewhere, mostly pages */
    uint32_t begun;             /* stack_unmappings when the present walk began */
    int grows; /* the thread's own stack goes on below `low`, nobody told how far */
};

/* How often the program unmapped memory. */
extern uint32_t stack_unmappings;

/* Before memory goes, or is replaced. */
INLINE void stack_note_unmapping(void) {
    __atomic_fetch_add(&stack_unmappings, 1, __ATOMIC_RELAXED);
}

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
    stack->begun = LOAD_RELAXED(&stack_unmappings);
}

/* It is known otherwise that [from, to), on another stack, belongs to functions that go on. */
INLINE void stack_believe(struct stack_bounds *stack, uintptr_t from, uintptr_t to) {
    stack->there = from;
    stack->there_end = to;
}

/* Asks the kernel for the page of this address. */
int stack_ask(struct stack_bounds *stack, uintptr_t address);

INLINE int stack_can_read(struct stack_bounds *stack, uintptr_t address) {
    return address % sizeof(uintptr_t) == 0 &&
           (LIKELY(stack_holds(stack, address)) ||
            (address >= stack->there && address < stack->there_end) || stack_ask(stack, address));
}

INLINE int stack_same_page(uintptr_t a, uintptr_t b) {
    return (a ^ b) < STACK_PAGE;
}

/* The function that goes on at `pc` returns by this slot, on another page than its callee did:
 * whether the slot is sure to be there for as long as the function goes on. */
int stack_is_called(uint64_t pc, uintptr_t slot);

#endif
