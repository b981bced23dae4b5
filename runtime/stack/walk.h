/* SPDX-License-Identifier: MIT */
/*
 * walk.h: from the registers at an allocation to its context.
 *
 * The walk steps outwards by unwind rules until it meets a frame whose context is known already:
 *  - a slot of the shadow stack with its context filled in (instrumented code), or
 *  - a remembered frame, all of whose older inputs are still what they were (any other code).
 * Then it comes back, one child a frame, and remembers what it met. docs/architecture.md proves
 * that a remembered frame may be trusted.
 */
#ifndef RUNTIME_STACK_WALK_H
#define RUNTIME_STACK_WALK_H

#include "runtime/stack/context.h"
#include "runtime/stack/rule.h"
#include "runtime/stack/shadow.h"

/* A frame, seen from its callee: it goes on at pc, which was read at `slot`; fp is its frame
 * pointer. Its stack pointer is slot + 8. */
struct frame {
    uintptr_t pc; /* RULE_EXACT set: an interrupted instruction */
    uintptr_t slot;
    uintptr_t fp;
};

struct walk_frame {
    struct frame frame;
    uint32_t context;
    int32_t fp_at; /* fp was read at slot + fp_at; 0: it is the next newer frame's */
    uint32_t flags;
    uint32_t module;
};

enum {
    WALK_UNSURE =
        1,          /* reached by a step that depends on more than slot and fp: not trusted later */
    WALK_ENTRY = 4, /* its pc is the start of a function that nobody called: __restore_rt */
    WALK_SKIPPED = 2, /* the runtime's own, or with MEMTRACE_STACKS=short the system's */
};

/* What a thread remembers. All in private memory that a forked child inherits. */
struct walker {
    struct walk_frame *remembered; /* oldest first */
    uint32_t remembered_count;
    /* Where the oldest remembered frame was called from: this slot of the shadow stack, as it was
     * then; index 0: remembered[0] is the outermost frame. */
    uint32_t base_index;
    uintptr_t base_slot;
    uintptr_t base_pc;
    uint32_t base_context;
    uint32_t capacity;        /* of both arrays */
    struct walk_frame *fresh; /* newest first; scratch */
    uintptr_t low, high;      /* the thread's own stack; high 0: not known */
    uintptr_t entry; /* where the kernel set the stack pointer at the start; 0: elsewhere */
    struct context_cache cache;
    struct shadow_stack shadow;
};

/* What all walks share. */
struct walk_world {
    struct context_tree *tree;
    struct rules *rules;
    struct space *space;
    int own_frames_only; /* MEMTRACE_STACKS=short */
};

int walk_init(struct walker *walker, uintptr_t low, uintptr_t high); /* 0, or -1: no memory */
void walk_free(struct walker *walker);

struct context_id walk_context_slow(struct walk_world *world, struct walker *walker, uintptr_t pc,
                                    uintptr_t slot, uintptr_t fp);

/* The context of the allocation whose caller is `frame`. At once where the newest instrumented
 * frame called the allocator from the same place as last time: whatever fills its slot of the
 * shadow stack again forgets what is remembered here. */
INLINE struct context_id walk_context(struct walk_world *world, struct walker *walker,
                                      struct frame frame) {
    const struct walk_frame *newest = walker->remembered;
    uint32_t base = walker->base_index;
    if (LIKELY(base != 0 && base == walker->shadow.top && walker->remembered_count == 1 &&
               newest->frame.slot == frame.slot && newest->frame.pc == frame.pc &&
               newest->frame.fp == frame.fp && (newest->flags & WALK_UNSURE) == 0 &&
               walker->shadow.slot[base] == walker->base_slot)) {
        return (struct context_id){newest->context};
    }
    return walk_context_slow(world, walker, frame.pc, frame.slot, frame.fp);
}

#endif
