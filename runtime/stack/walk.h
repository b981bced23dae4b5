/* SPDX-License-Identifier: MIT */
/*
 * walk.h: from the registers at an allocation to its context.
 *
 * The walk steps outwards by unwind rules until it meets a frame whose context is known already:
 *  - a slot of the shadow stack with its context filled in (code with hooks),
 *  - a frame word that holds the context of the frame's caller (code built with a pass), or
 *  - a remembered frame, all of whose older inputs are still what they were (any other code).
 * Then it comes back, one child a frame, and remembers what it met. docs/architecture.md proves
 * that a remembered frame may be trusted.
 */
#ifndef RUNTIME_STACK_WALK_H
#define RUNTIME_STACK_WALK_H

#include "runtime/stack/context.h"
#include "runtime/stack/rule.h"
#include "runtime/stack/shadow.h"
#include "runtime/stack/step.h"
#include "runtime/stack/trail.h"

/* A frame of a walk: on its path, or remembered. Half a cache line. */
struct walk_frame {
    uint64_t code; /* return address and area, as context.h has them */
    uintptr_t slot;
    uintptr_t fp;
    uint32_t context; /* once it is remembered */
    uint32_t how;     /* flags, and walk_word() and walk_fp_at(): below */
    struct machine_sp sp;
};
_Static_assert(sizeof(uintptr_t) != 8 ||
                   sizeof(struct walk_frame) == 32 + sizeof(struct machine_sp),
               "two a cache line");

enum {
    WALK_WORD_MASK = (1 << RULE_WORD_BITS) - 1,
    WALK_FP_AT_SHIFT = 16,
    WALK_FP_MASK = 0xff << WALK_FP_AT_SHIFT,
    WALK_UNSURE = 1 << 24, /* reached by a step that depends on more than slot and fp */
    /* The CFA of its function is found by fp. */
    WALK_BY_FP = RULE_BY_FP,
    WALK_SKIPPED = 1 << 26, /* the runtime's own, or with MEMTRACE_STACKS=short the system's */
    WALK_GUARDED = 1 << 27, /* a guard stands in its slot, or stood there */
    /* Never patched: no plain rule leads on, so others may know this frame by its return address;
     * or an exception may end here, and unwinders know the frame by its distance from its callee.
     */
    WALK_UNPATCHED = RULE_UNPATCHED,
    /* Whatever fp is in this frame, nothing older depends on it: the function uses the register for
     * something else, and has saved its caller's. */
    WALK_OWN_FP = RULE_OWN_FP,
    /* Unsure, but its pc, slot and fp lie in the kernel's signal frame that the next newer
     * remembered frame returns to, and are compared there. */
    WALK_INTERRUPTED = 1 << 30,
};
/* Its function may have signed the return address by which it leaves: the slot of the next older
 * frame is not for guards. (MACHINE_MAY_SIGN) */
#define WALK_SIGNED (UINT32_C(1) << 31)

/* The function's frame word lies so many times 4 bytes below its CFA; 0: it has none. */
INLINE uint32_t walk_word(const struct walk_frame *it) {
    return it->how & WALK_WORD_MASK;
}

/* The frame's fp was read there, as frame_fp_place() has it; 0: it is its callee's, or does not
 * matter.
 */
INLINE int8_t walk_fp_at(const struct walk_frame *it) {
    return (int8_t)(it->how >> WALK_FP_AT_SHIFT);
}

INLINE uint32_t walk_fp_bits(int8_t fp_at) {
    return (uint32_t)(uint8_t)fp_at << WALK_FP_AT_SHIFT;
}

/* How stacks are walked: MEMTRACE_UNWIND. */
enum walk_unwind {
    UNWIND_AUTO,      /* patch where that is safe, else verify */
    UNWIND_VERIFY,    /* what is remembered is compared */
    UNWIND_PATCH,     /* up to the next guard */
    UNWIND_FP,        /* by frame pointers alone, whatever the unwind tables say */
    UNWIND_LIBUNWIND, /* by libunwind, each time from the start */
    UNWIND_MODES
};

/* The newest allocation, for the next one from the same place. */
struct walk_last {
    uint64_t pc; /* 0: the path is not to be trusted */
    uintptr_t slot;
    uintptr_t fp;
    const uint32_t *word; /* its function's frame word, which holds `parent`; NULL: it has none */
    uint32_t parent;
    uint32_t context;
    uint64_t counted_pc;        /* pc, once it is known where `context` is counted; or 0 */
    struct memtrace_cell *cell; /* there */
    struct machine_sp sp;
};

/* The frames of the newest walk that was remembered: remembered.h. */
struct remembered {
    struct walk_frame *frame; /* oldest first */
    uint32_t count;
    uint32_t generation; /* of the rules by which they were reached */
    /* What the oldest was called from: this slot of the shadow stack, as it was then; or a frame
     * that is not remembered. */
    uint32_t base_index; /* BASE_OUTERMOST, BASE_UNKNOWN or a slot */
    uint32_t base_context;
    uintptr_t base_slot;
    uint64_t base_pc;
    /* Some frame of another stack than the thread's own is on another page than the next newer one;
     * stack_unmappings before it was read. */
    int apart;
    uint32_t unmappings;
    struct machine_sp base_sp;
};

enum {
    BASE_OUTERMOST = 0,        /* nobody called the oldest frame */
    BASE_UNKNOWN = UINT32_MAX, /* somebody, of whom only a frame word told; or it cannot be told */
    BASE_ZERO = BASE_UNKNOWN - 1, /* nobody, as a 0 in its return slot says, at base_slot */
};

/* When is the next guard placed, and where? */
struct guarding {
    uint32_t voucher; /* index of the remembered frame that vouched for all older ones */
    uint32_t unsure;  /* index + 1 of the newest remembered frame that can never be known again */
    uint32_t chance;  /* a number of a pseudo-random sequence */
    int32_t compared; /* frames compared since the last guard was placed */
    int is_off;       /* the stack was not what a guard vouched for */
};

/* What a thread knows of its stack. All in private memory that a forked child inherits. */
struct walker {
    struct walk_last last;
    struct remembered remembered;
    struct guarding guarding;
    struct walk_frame *path;   /* of the walk that goes on: newest first */
    uint32_t capacity;         /* of it and of remembered.frame */
    struct stack_bounds stack; /* the thread's own */
    struct rule_cache rules;
    struct context_cache cache;
    struct trails trails;
    struct shadow_stack shadow;
};

/* What all walks share. */
struct walk_world {
    struct context_tree *tree;
    struct rules *rules;
    struct space *space;
    int own_frames_only;               /* MEMTRACE_STACKS=short */
    int patches;                       /* guards are placed */
    const struct libunwind *libunwind; /* MEMTRACE_UNWIND=libunwind; else NULL */
};

/* All zeros before, or left by walk_forget(). 0, or -1: no memory. */
int walk_init(struct walker *walker, uintptr_t low, uintptr_t high);
/* Its thread is gone, and it can be another's: what it has touched stays. */
void walk_forget(struct walker *walker);
void walk_free(struct walker *walker);

struct context_id walk_context_slow(struct walk_world *world, struct walker *walker, uint64_t pc,
                                    uintptr_t slot, uintptr_t fp, struct machine_sp sp);

/* Whether a signal handler runs that interrupted an instruction of the runtime's own: steps
 * outwards from `frame`, as far as there is unwind information. */
int interrupted_inside(struct rules *rules, struct stack_bounds stack, struct frame frame);

/* Takes the guards off the calling thread's stack, from this frame outwards. */
void walk_remove_guards(struct walk_world *world, struct stack_bounds stack, struct frame frame);

/* Whether one word vouches for all that is older than the newest allocation: its function's frame
 * word, or the slot of the shadow stack. */
INLINE int walk_is_vouched(const struct walker *walker) {
    uint32_t base = walker->remembered.base_index;
    if (LIKELY(walker->last.word != NULL)) {
        return *walker->last.word == walker->last.parent;
    }
    return walker->remembered.count == 1 && base != BASE_OUTERMOST && base == walker->shadow.top &&
           walker->shadow.slot[base] == walker->remembered.base_slot;
}

/* Whether `frame` is the caller of the newest allocation, whose context is known at once: an
 * instrumented function calls the allocator from the same place as last time. Had it been entered
 * anew, or its slot of the shadow stack been filled by another walk, the word would not be what it
 * was. */
INLINE int walk_is_last(const struct walker *walker, const struct frame *frame) {
    const struct walk_last *last = &walker->last;
    return LIKELY(last->pc == frame->pc && last->slot == frame->slot && last->fp == frame->fp &&
                  machine_same_sp(last->sp, frame->sp) && walk_is_vouched(walker));
}

/* The context of the allocation whose caller is `frame`. */
INLINE struct context_id walk_context(struct walk_world *world, struct walker *walker,
                                      struct frame frame) {
    if (walk_is_last(walker, &frame)) {
        return (struct context_id){walker->last.context};
    }
    return walk_context_slow(world, walker, frame.pc, frame.slot, frame.fp, frame.sp);
}

#endif
