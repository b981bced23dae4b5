/* SPDX-License-Identifier: MIT */
/*
 * shadow.h: the shadow stack that compiler instrumentation feeds. One a thread.
 *
 * A slot holds the address of a frame's return slot (the word on the real stack that holds its
 * return address). Bit 0 set: the frame's context is known (entry[i]). A push overwrites the whole
 * word, so pushing again to the same place forgets the context by the same store.
 *
 * Invariants: slot addresses fall strictly with the index; entry[i] is right as long as bit 0 of
 * slot[i] is set and the return address found in the slot is still entry[i].pc: an instrumented
 * frame that ends clears the bit, one that begins rewrites it, and a context names only return
 * addresses from the slot outwards, never the function that runs there.
 * The stack is a hint, never the truth: the walk starts at the real stack pointer and believes a
 * slot only when it meets its address.
 */
#ifndef RUNTIME_STACK_SHADOW_H
#define RUNTIME_STACK_SHADOW_H

#include "runtime/base/compiler.h"
#include "runtime/stack/context.h"

struct shadow_entry {
    uint64_t pc;
    uint32_t parent; /* context of the caller: with pc, the memo that saves a lookup */
    uint32_t context;
};

struct shadow_stack {
    uintptr_t *slot; /* slot[0] is UINTPTR_MAX, so that popping needs no bound */
    uint32_t top;    /* index of the newest slot; 0: empty */
    uint32_t capacity;
    struct shadow_entry *entry;
    uintptr_t low, high; /* the real stack this one shadows */
    uint64_t foreign;    /* pushes on another stack: not kept, unwound instead */
};

enum { SHADOW_KNOWN = 1, SHADOW_FIRST_CAPACITY = 1024 };

/* 0, or -1: no memory. [low, high) is the real stack. */
int shadow_init(struct shadow_stack *shadow, uintptr_t low, uintptr_t high);
void shadow_free(struct shadow_stack *shadow);
/* Another stack, or no room: the slow half of a push. */
void shadow_push_slow(struct shadow_stack *shadow, uintptr_t slot);

/* A function was entered whose return address lies at `slot`. */
INLINE void shadow_push(struct shadow_stack *shadow, uintptr_t slot) {
    uint32_t top = shadow->top;
    if (UNLIKELY(slot - shadow->low >= shadow->high - shadow->low || top + 1 >= shadow->capacity)) {
        shadow_push_slow(shadow, slot);
        return;
    }
    while ((shadow->slot[top] & ~(uintptr_t)SHADOW_KNOWN) <= slot) {
        top--; /* ended without an exit hook, or the same frame (an inlined function) */
    }
    top++;
    /* The bump comes first: a handler in between pushes above the half-written slot. */
    STORE_RELAXED(&shadow->top, top);
    SIGNAL_FENCE();
    STORE_RELAXED(&shadow->slot[top], slot);
}

/* The function whose return address lies at `slot` ends; or one that was inlined into it, so the
 * slot stays, with its context forgotten. */
INLINE void shadow_pop(struct shadow_stack *shadow, uintptr_t slot) {
    uint32_t top = shadow->top;
    if (UNLIKELY(slot - shadow->low >= shadow->high - shadow->low)) {
        return;
    }
    while ((shadow->slot[top] & ~(uintptr_t)SHADOW_KNOWN) < slot) {
        top--;
    }
    if ((shadow->slot[top] & ~(uintptr_t)SHADOW_KNOWN) == slot) {
        STORE_RELAXED(&shadow->slot[top], slot);
    }
    SIGNAL_FENCE();
    STORE_RELAXED(&shadow->top, top);
}

#endif
