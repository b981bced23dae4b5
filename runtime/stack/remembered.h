/* SPDX-License-Identifier: MIT */
/*
 * remembered.h: is a frame that a thread remembers still there, and all that is older? The hot half
 * of a walk over prebuilt code. docs/unwinding.md proves that the answer may be trusted.
 */
#ifndef RUNTIME_STACK_REMEMBERED_H
#define RUNTIME_STACK_REMEMBERED_H

#include "runtime/stack/frame_word.h"
#include "runtime/stack/guard.h"
#include "runtime/stack/walk.h"

/* Guards stand this far from the newest frame, where frames live longer than an allocation, and
 * twice as far from each other: to meet one costs a mispredicted return when its frame ends, as
 * much as comparing ten frames. */
enum { GUARD_DISTANCE = 16 };
/* One in so many hits of a guard looks whether it speaks the truth. */
enum { GUARD_CHECK = 8 };

/* A stack that is copied away and back (greenlet) can bring guards that stand for other frames than
 * those remembered. Looks at one frame that frame `guarded` vouches for, another each time. */
int remembered_guard_is_true(const struct walker *walker, uint32_t guarded);
/* It did not: no more guards on this thread's stack, and nothing is remembered. */
void remembered_give_up_guards(struct walk_world *world, struct walker *walker);
/* After a walk that had to look far: the next one need not. */
void remembered_place_guard(struct walker *walker);

INLINE int same_frame(const struct frame *a, const struct frame *b) {
    return a->slot == b->slot && a->pc == b->pc && a->fp == b->fp;
}

/* Whether all that the step to this frame read is what it was. */
INLINE int inputs_hold(const struct walk_frame *it) {
    return (it->flags & WALK_UNSURE) == 0 && stack_load(it->frame.slot) == it->frame.pc &&
           (it->fp_at == 0 ||
            stack_load(it->frame.slot + (uintptr_t)(intptr_t)it->fp_at) == it->frame.fp);
}

/* Whether the oldest remembered frame still stands on what it stood on. */
INLINE int base_holds(const struct walker *walker) {
    const struct shadow_stack *shadow = &walker->shadow;
    uint32_t base = walker->base_index;
    if (base == BASE_OUTERMOST || base == BASE_UNKNOWN) {
        return base == BASE_OUTERMOST;
    }
    return base <= shadow->top && shadow->slot[base] == walker->base_slot &&
           shadow->entry[base].pc == walker->base_pc &&
           shadow->entry[base].context == walker->base_context;
}

INLINE uintptr_t guard_address(const struct walk_frame *it) {
    return (uintptr_t)memtrace_guard + it->guard - 1;
}

/* Whether this frame's slot holds the guard that was put there. Only a call writes a return slot:
 * so its function has not returned since, and all that is older is as it was. */
INLINE int guard_holds(const struct walk_frame *it) {
    return it->guard != 0 && stack_load(it->frame.slot) == guard_address(it);
}

/* Fills the words that proved to stand where they stood in frames that were entered anew. */
INLINE void refill_words(const struct walk_frame *it, const struct walk_frame *newest) {
    for (; it <= newest; it++) {
        if (it->frame_word_at != 0 && *walk_frame_word(it) == FRAME_WORD_FRESH) {
            *walk_frame_word(it) = it->parent;
        }
    }
}

/* Remembered frame `newest` is there. Are all older ones? Looks outwards, up to a frame word or a
 * guard that vouches for the rest. 1, or 0: what proved wrong is forgotten. */
INLINE int recognise_older(struct walk_world *world, struct walker *walker, uint32_t newest) {
    struct walk_frame *oldest = walker->remembered;
    struct walk_frame *it = &oldest[newest];
    int has_words = 0;
    int guarded = guard_holds(it);
    while (!guarded) {
        if (it->frame_word_at != 0) {
            if (*walk_frame_word(it) == it->parent) {
                break;
            }
            has_words = 1;
        }
        if (UNLIKELY(it == oldest)) {
            if (!base_holds(walker)) {
                walker->remembered_count = 0;
                return 0;
            }
            break;
        }
        it--;
        if (UNLIKELY(!inputs_hold(it))) {
            guarded = guard_holds(it);
            if (!guarded) {
                walker->remembered_count = (uint32_t)(it - oldest);
                return 0;
            }
        }
    }
    walker->vouched = (uint32_t)(it - oldest);
    if (guarded && ++walker->guard_hits % GUARD_CHECK == 0 &&
        UNLIKELY(!remembered_guard_is_true(walker, walker->vouched))) {
        remembered_give_up_guards(world, walker);
        return 0;
    }
    if (has_words) {
        refill_words(it, &oldest[newest]);
    }
    return 1;
}

/* Is this frame the remembered one, with everything older unchanged? If so its index + 1. Forgets
 * what proved wrong: afterwards every remembered frame is older than this one, or is this one. */
INLINE uint32_t recognise(struct walk_world *world, struct walker *walker,
                          const struct frame *frame) {
    const struct walk_frame *remembered = walker->remembered;
    const struct walk_frame *end = remembered + walker->remembered_count;
    while (end != remembered && end[-1].frame.slot < frame->slot) {
        end--;
    }
    if (end != remembered && end[-1].frame.slot == frame->slot) {
        if (same_frame(&end[-1].frame, frame) && (end[-1].flags & WALK_UNSURE) == 0) {
            uint32_t count = (uint32_t)(end - remembered);
            walker->remembered_count = count;
            return recognise_older(world, walker, count - 1) ? count : 0;
        }
        end--;
    }
    walker->remembered_count = (uint32_t)(end - remembered);
    return 0;
}

/* Whether the next walk would have to look far. */
INLINE int wants_guard(const struct walk_world *world, const struct walker *walker) {
    return (walker->remembered_count - walker->vouched > 2 * GUARD_DISTANCE ||
            walker->unsure != 0) &&
           world->patches && !walker->guards_off && walker->shadow.capacity == 0;
}

#endif
