/* SPDX-License-Identifier: MIT */
/*
 * path.h: the path of one walk: from the allocation outwards to a frame whose context is known, and
 * back, one child a frame. Used by walk.c alone.
 */
#ifndef RUNTIME_STACK_PATH_H
#define RUNTIME_STACK_PATH_H

#include "runtime/stack/remembered.h"
#include "runtime/stack/walk.h"

/* What a walk came to. */
enum path_end { AT_OUTERMOST, AT_SHADOW, AT_WORD, AT_REMEMBERED };

/* What a path holds besides usual frames: those of the thread's own stack with plain rules. */
enum {
    ODD_WORD = 1,    /* frame words */
    ODD_UNSURE = 2,  /* a step that depended on more than what was read by rules */
    ODD_SKIPPED = 4, /* frames that make no context */
    ODD_STACK = 8    /* frames of another stack, or the thread has a shadow stack */
};

/* How far out a walk has come. The remembered frames stay as they are until it comes back. */
struct path {
    struct frame frame;
    uint32_t count;   /* frames on the path; this one is not */
    uint32_t known;   /* remembered frames that may be this one or older ones */
    uint32_t context; /* of this frame, as the word of the function that it called tells; 0: not */
    uint32_t end;     /* the base of a path that ends here; with BASE_ZERO `frame` is its place */
    uint32_t shadow;  /* the newest slot of the shadow stack that is not below this frame; or 0 */
    uint32_t flags;   /* of this frame: those that the step to it decides */
    int8_t fp_at;     /* as walk_fp_at() */
    uint8_t odd;
    /* The next frame word may be left over from an earlier call: a signal or lazy binding can come
     * before it is made. Only there: a call to what may allocate comes after its making. */
    uint8_t doubtful;
    /* A frame word will end the path soon: then nothing needs to be remembered or known again. */
    uint8_t seeks_word;
    uint8_t without_word; /* frames */
};

/* Puts the present frame, which has this rule, on the path. */
struct walk_frame *path_add(const struct walk_world *world, struct walker *walker, struct path *at,
                            struct rule rule);

/* Twice the room for paths and remembered frames. 0, or -1: no memory. */
int path_grow(struct walker *walker);

/* Steps outwards to a frame whose context is known. `voucher`: who tells that, if it is remembered
 * with everything older unchanged. */
enum path_end path_go_out(struct walk_world *world, struct walker *walker, struct path *at,
                          uint32_t *voucher);

/* From the oldest frame of the path to the newest, from the context of what called it: that of the
 * newest. They are remembered, where that is asked for. */
struct context_id path_come_back(struct walk_world *world, struct walker *walker,
                                 const struct path *at, struct context_id context,
                                 int is_remembering);

/* How frame `it`, which is not on the thread's own stack, was reached: from the frame `newer`.
 * Whether its words may be compared later where all newer ones are what they were. */
int path_may_follow(struct walker *walker, struct walk_frame *it, const struct walk_frame *newer);

#endif
