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

struct walk_frame {
    struct frame frame;
    uintptr_t input; /* what else was read to get here, at slot + input_at: fp, or pc again */
    uint32_t context;
    uint32_t parent; /* the caller's context, which the frame word of this function holds */
    int32_t input_at;
    int32_t frame_word_at; /* with WALK_HAS_WORD: the word lies at slot + this */
    uint16_t flags;
    uint16_t module;
    uint32_t guard; /* 1 + how far into the guards lies what stands in the slot; 0: none */
};

enum {
    WALK_UNSURE =
        1,          /* reached by a step that depends on more than slot and fp: not trusted later */
    WALK_ENTRY = 4, /* its pc is the start of a function that nobody called: __restore_rt */
    WALK_SKIPPED = 2, /* the runtime's own, or with MEMTRACE_STACKS=short the system's */
    /* Never patched: no plain rule leads on, so others may know this frame by its return address;
     * or an exception may end here, and unwinders know the frame by its distance from its callee.
     */
    WALK_UNPATCHED = 8,
    WALK_HAS_WORD = 16, /* and it is to be believed */
    /* Whatever fp is in this frame, nothing older depends on it: the function uses the register for
     * something else, and has saved its caller's. */
    WALK_OWN_FP = 32,
    /* Unsure, but its pc, slot and fp lie in the kernel's signal frame that the next newer
     * remembered frame returns to, and are compared there. */
    WALK_INTERRUPTED = 64,
};

/* How stacks are walked: MEMTRACE_UNWIND. */
enum walk_unwind {
    UNWIND_AUTO,      /* patch where that is safe, else verify */
    UNWIND_VERIFY,    /* what is remembered is compared */
    UNWIND_PATCH,     /* up to the next guard */
    UNWIND_FP,        /* by frame pointers alone, whatever the unwind tables say */
    UNWIND_LIBUNWIND, /* by libunwind, each time from the start */
    UNWIND_MODES
};

enum {
    BASE_OUTERMOST = 0,        /* nobody called the oldest frame */
    BASE_UNKNOWN = UINT32_MAX, /* somebody, of whom only a frame word told; or it cannot be told */
    BASE_ZERO = BASE_UNKNOWN - 1, /* nobody, as a 0 in its return slot says, at base_slot */
};

/* The newest allocation, for the next one from the same place. */
struct walk_last {
    uintptr_t pc; /* 0: the way is not to be trusted */
    uintptr_t slot;
    uintptr_t fp;
    const uint32_t *word; /* its function's frame word, which holds `parent`; NULL: it has none */
    uint32_t parent;
    uint32_t context;
};

/* A way outwards that was taken before: trail.h. */
enum { TRAIL_MOST = 24, TRAIL_WAYS = 4, TRAIL_SETS = 32 };
/* After so many misses in a row, trails are used only one time in so many. */
enum { TRAIL_PATIENCE = 16, TRAIL_SELDOM = 8 };

struct walk_trail {
    struct frame from; /* pc 0: unused */
    uint32_t generation;
    uint32_t count;
    uint32_t at[TRAIL_MOST]; /* the words that were read, from the first slot on */
    uintptr_t value[TRAIL_MOST];
    int needs_fp;              /* from.fp was used */
    uint32_t context;          /* where it led */
    uint32_t base_context;     /* and of what called the last frame on it, or is that frame: */
    const uint32_t *base_word; /* the last function's frame word; or NULL, and */
    uint32_t base_index;       /* the remembered frame that it leads to, */
    struct frame base;         /* which is this */
    uint32_t *word;            /* the first function's frame word; NULL: none */
    uint32_t parent;           /* what that is to hold */
};

/* Those that start at like places. */
struct trail_set {
    uint32_t missed; /* walks since one of them was taken */
    uint32_t next;   /* says which is overwritten next */
    struct walk_trail way[TRAIL_WAYS];
};

/* What a thread remembers. All in private memory that a forked child inherits. */
struct walker {
    struct walk_last last;
    struct walk_frame *remembered; /* oldest first */
    uint32_t remembered_count;
    uint32_t generation; /* of the rules by which they were reached */
    /* Where the oldest remembered frame was called from: this slot of the shadow stack, as it was
     * then; or a frame that is not remembered. */
    uint32_t base_index; /* BASE_OUTERMOST, BASE_UNKNOWN or a slot */
    uint32_t base_context;
    uintptr_t base_slot;
    uintptr_t base_pc;
    /* Some remembered frame of another stack than the thread's own is on another page than the next
     * newer one; stack_unmappings before it was read. */
    int apart;
    uint32_t unmappings;
    uint32_t vouched;  /* index of the remembered frame that vouches for all older ones */
    uint32_t unsure;   /* index + 1 of the newest remembered frame that can never be known again */
    uint32_t chance;   /* a number of a pseudo-random sequence */
    int32_t compared;  /* frames compared since the last guard was placed */
    int guards_off;    /* the stack was not what a guard vouched for */
    uint32_t capacity; /* of both arrays */
    struct walk_frame *fresh;  /* newest first; scratch */
    struct stack_bounds stack; /* the thread's own */
    struct context_cache cache;
    struct trail_set trails[TRAIL_SETS];
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

int walk_init(struct walker *walker, uintptr_t low, uintptr_t high); /* 0, or -1: no memory */
void walk_free(struct walker *walker);

struct context_id walk_context_slow(struct walk_world *world, struct walker *walker, uintptr_t pc,
                                    uintptr_t slot, uintptr_t fp);

/* Takes the guards off the calling thread's stack, from this frame outwards. */
void walk_remove_guards(struct walk_world *world, struct stack_bounds stack, struct frame frame);

/* The walk over frames with words, as far as it is simple; 0: it is not, nothing was done. */
struct context_id word_walk(struct walk_world *world, struct walker *walker, uintptr_t pc,
                            uintptr_t slot, uintptr_t fp);

/* The walk over frames with plain rules to a remembered one, as far as it is simple; 0: it is not.
 */
struct context_id plain_walk(struct walk_world *world, struct walker *walker, uintptr_t pc,
                             uintptr_t slot, uintptr_t fp);

/* The next allocation may be from the same place. */
INLINE void walk_note_last(struct walker *walker, struct frame frame, const uint32_t *word,
                           uint32_t parent, uint32_t context) {
    walker->last.pc = frame.pc;
    walker->last.slot = frame.slot;
    walker->last.fp = frame.fp;
    walker->last.word = word;
    walker->last.parent = parent;
    walker->last.context = context;
}

/* At the end of a way over frame words: that of the allocating function vouches next time. */
INLINE void walk_note_word(struct walker *walker, const struct frame *frame, uint32_t *word,
                           uint32_t parent, uint32_t context) {
    walker->last.pc = 0;
    if (word != NULL) {
        *word = parent;
        walk_note_last(walker, *frame, word, parent, context);
    }
}

INLINE uint32_t *walk_frame_word(const struct walk_frame *it) {
    return (uint32_t *)(it->frame.slot + (uintptr_t)(intptr_t)it->frame_word_at);
}

/* Whether one word vouches for all that is older than the newest allocation: its function's frame
 * word, or the slot of the shadow stack. */
INLINE int walk_is_vouched(const struct walker *walker) {
    uint32_t base = walker->base_index;
    if (LIKELY(walker->last.word != NULL)) {
        return *walker->last.word == walker->last.parent;
    }
    return walker->remembered_count == 1 && base != BASE_OUTERMOST && base == walker->shadow.top &&
           walker->shadow.slot[base] == walker->base_slot;
}

/* The context of the allocation whose caller is `frame`. At once where an instrumented function
 * calls the allocator from the same place as last time: had it been entered anew, or its slot of
 * the shadow stack been filled by another walk, the word would not be what it was. */
INLINE struct context_id walk_context(struct walk_world *world, struct walker *walker,
                                      struct frame frame) {
    const struct walk_last *last = &walker->last;
    if (LIKELY(last->pc == frame.pc && last->slot == frame.slot && last->fp == frame.fp &&
               walk_is_vouched(walker))) {
        return (struct context_id){last->context};
    }
    return walk_context_slow(world, walker, frame.pc, frame.slot, frame.fp);
}

#endif
