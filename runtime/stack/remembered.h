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

/* A guard costs its placing and a mispredicted return when its frame ends, together as much as
 * comparing so many frames. So one is placed whenever that much was spent on comparing: then guards
 * never cost more than what they might have saved. */
enum { GUARD_PRICE = 32 };
enum { GUARD_GAP = 6 };     /* fewer frames without a guard are left so */
enum { GUARD_WAIT = 4096 }; /* more comparing until it is tried again where none can stand */
/* One in so many hits of a guard looks whether it speaks the truth. */
enum { GUARD_CHECK = 8 };

/* A stack that is copied away and back (greenlet) can bring guards that stand for other frames than
 * those remembered. Looks at one frame that frame `guarded` vouches for, another each time. */
int remembered_guard_is_true(const struct walker *walker, uint32_t guarded);
/* It did not: no more guards on this thread's stack, and nothing is remembered. */
void remembered_give_up_guards(struct walk_world *world, struct walker *walker);
/* Code is gone, and other code may be where it was: the same addresses no longer say that all is as
 * it was. */
void remembered_forget(struct walker *walker, const struct rules *rules, uintptr_t slot);
/* After a walk that had to look far: the next one need not. */
void remembered_place_guard(struct walker *walker);

/* Whether this remembered frame is there again, as far as it can tell its own: older ones may
 * differ. */
INLINE int same_frame(const struct walk_frame *it, const struct frame *frame) {
    return it->frame.slot == frame->slot && it->frame.pc == frame->pc &&
           (it->flags & WALK_UNSURE) == 0 &&
           ((it->flags & WALK_OWN_FP) != 0 || it->frame.fp == frame->fp);
}

/* Whether all that the step to this frame read is what it was, and nothing more is to be asked of
 * the frame than `unless`. In one branch: this is done for every frame that is known again. */
INLINE int inputs_hold(const struct walk_frame *it, uint16_t unless) {
    uintptr_t input = it->frame.slot + (uintptr_t)(intptr_t)it->input_at;
    return LIKELY(((stack_load(it->frame.slot) ^ it->frame.pc) | (stack_load(input) ^ it->input) |
                   (it->flags & unless)) == 0);
}

/* Whether the oldest remembered frame still stands on what it stood on. */
INLINE int base_holds(const struct walker *walker) {
    const struct shadow_stack *shadow = &walker->shadow;
    uint32_t base = walker->base_index;
    if (base == BASE_OUTERMOST || base == BASE_UNKNOWN) {
        return base == BASE_OUTERMOST;
    }
    if (base == BASE_ZERO) {
        return stack_load(walker->base_slot & ~(uintptr_t)SHADOW_KNOWN) == 0;
    }
    return base <= shadow->top && shadow->slot[base] == walker->base_slot &&
           shadow->entry[base].pc == walker->base_pc &&
           shadow->entry[base].context == walker->base_context;
}

INLINE uintptr_t guard_address(const struct walk_frame *it) {
    return (uintptr_t)memtrace_guard + it->guard - 1;
}

/* What a frame notes of its guard. */
INLINE uint32_t guard_number(uintptr_t guard) {
    return (uint32_t)(guard - (uintptr_t)memtrace_guard) + 1;
}

/* Whether this frame's slot holds the guard that was put there. Only a call writes a return slot:
 * so its function has not returned since, and all that is older is as it was. */
INLINE int guard_holds(const struct walk_frame *it) {
    return it->guard != 0 && stack_load(it->frame.slot) == guard_address(it);
}

/* Fills the words that proved to stand where they stood in frames that were entered anew. */
INLINE void refill_words(const struct walk_frame *it, const struct walk_frame *newest) {
    for (; it <= newest; it++) {
        if ((it->flags & WALK_HAS_WORD) != 0 && *walk_frame_word(it) == FRAME_WORD_FRESH) {
            *walk_frame_word(it) = it->parent;
        }
    }
}

/* Whether frame `it`, which is there, vouches for all that is older. */
INLINE int word_vouches(const struct walk_frame *it) {
    return (it->flags & WALK_HAS_WORD) != 0 && *walk_frame_word(it) == it->parent;
}

/* Whether signal frame `it[1]`, which is there, still says that it interrupted frame `it`. */
INLINE int interruption_holds(const struct walk_frame *it) {
    struct frame frame;
    if (LIKELY((it->flags & WALK_INTERRUPTED) == 0)) {
        return 0;
    }
    step_from_signal(it[1].frame.slot, &frame);
    return frame.pc == it->frame.pc && frame.slot == it->frame.slot && frame.fp == it->frame.fp;
}

/* Frame `from` is there and vouches for nothing. The next older one that vouches for the rest, or
 * the oldest, which stands on its base; NULL: one is not what it was, forgotten is all from there.
 */
INLINE struct walk_frame *find_voucher(struct walker *walker, struct walk_frame *from) {
    struct walk_frame *oldest = walker->remembered;
    if (UNLIKELY(walker->apart) && walker->unmappings != LOAD_RELAXED(&stack_unmappings)) {
        walker->remembered_count = 0; /* another page may be gone */
        return NULL;
    }
    for (struct walk_frame *it = from; it-- != oldest;) {
        if (inputs_hold(it, WALK_UNSURE | WALK_HAS_WORD) || interruption_holds(it)) {
            continue;
        }
        if (guard_holds(it) || (inputs_hold(it, WALK_UNSURE) && word_vouches(it))) {
            return it;
        }
        if (!inputs_hold(it, WALK_UNSURE)) {
            walker->remembered_count = (uint32_t)(it - oldest);
            return NULL;
        }
    }
    if (!base_holds(walker)) {
        walker->remembered_count = 0;
        return NULL;
    }
    return oldest;
}

/* Remembered frame `newest` is there. Are all older ones? Looks outwards, up to a frame word or a
 * guard that vouches for the rest. 1, or 0: what proved wrong is forgotten. */
INLINE int recognise_older(struct walk_world *world, struct walker *walker, uint32_t newest) {
    struct walk_frame *from = &walker->remembered[newest];
    struct walk_frame *voucher =
        guard_holds(from) || word_vouches(from) ? from : find_voucher(walker, from);
    if (UNLIKELY(voucher == NULL)) {
        return 0;
    }
    walker->vouched = (uint32_t)(voucher - walker->remembered);
    walker->compared += (int32_t)(newest - walker->vouched);
    if (guard_holds(voucher)) {
        /* By chance: copied stacks may take turns in step with anything regular. */
        walker->chance = walker->chance * 1664525 + 1013904223;
        if (UNLIKELY(walker->chance < UINT32_MAX / GUARD_CHECK) &&
            !remembered_guard_is_true(walker, walker->vouched)) {
            remembered_give_up_guards(world, walker);
            return 0;
        }
    }
    if (world->rules->has_frame_words) {
        refill_words(voucher, from);
    }
    return 1;
}

/* Notes what the step to this frame read besides its return address: fp, at input_at (0: it did
 * not). That is the callee's doing, so it differs for a frame that is reached from another. */
INLINE void note_input(struct walk_frame *it, int32_t input_at) {
    int needs_fp = input_at != 0 && (it->flags & WALK_OWN_FP) == 0;
    it->input = needs_fp ? it->frame.fp : it->frame.pc;
    it->input_at = needs_fp ? input_at : 0;
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
        if (same_frame(&end[-1], frame)) {
            uint32_t count = (uint32_t)(end - remembered);
            walker->remembered_count = count;
            return recognise_older(world, walker, count - 1) ? count : 0;
        }
        end--;
    }
    walker->remembered_count = (uint32_t)(end - remembered);
    return 0;
}

/* Whether the next walk had better meet another guard, newer than what vouched for `newest`. */
INLINE int wants_guard(const struct walk_world *world, const struct walker *walker,
                       uint32_t newest) {
    int32_t gap = (int32_t)(newest - walker->vouched);
    return ((gap > GUARD_GAP && walker->compared + gap > GUARD_PRICE) || walker->unsure != 0) &&
           world->patches && !walker->guards_off && walker->shadow.capacity == 0;
}

#endif
