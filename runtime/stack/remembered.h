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

/* What a function has stored into its word, and what finds the store. */
#define FRAME_WORD_NEW (MACHINE_STORES_CONSTANTS ? FRAME_WORD_FRESH : 0)

/* Code is gone, and other code may be where it was: the same addresses no longer say that all is as
 * it was. */
void remembered_forget(struct walker *walker, const struct rules *rules, uintptr_t slot);
/* After a walk that had to look far: the next one need not. */
void remembered_place_guard(struct walker *walker);

/* --- questions, which change nothing ---------------------------------------------------------- */

INLINE uintptr_t remembered_pc(const struct walk_frame *it) {
    return it->code & MEMTRACE_FRAME_ADDRESS_MASK;
}

/* Whether this remembered frame is there again, as far as it can tell its own: older ones may
 * differ. */
INLINE int same_frame(const struct walk_frame *it, const struct frame *frame) {
    return it->slot == frame->slot && remembered_pc(it) == frame->pc &&
           machine_same_sp(it->sp, frame->sp) && (it->how & WALK_UNSURE) == 0 &&
           ((it->how & WALK_OWN_FP) != 0 || it->fp == frame->fp);
}

/* Whether all that the step to this frame read is what it was. */
INLINE int inputs_hold(const struct walk_frame *it) {
    return ((machine_plain(stack_load(it->slot)) ^ it->code) & MEMTRACE_FRAME_ADDRESS_MASK) == 0 &&
           (MACHINE_HAS_SECOND_FP
                ? frame_fps_hold(it->slot, walk_fp_at(it), it->fp, it->sp)
                : walk_fp_at(it) == 0 ||
                      stack_load(frame_fp_place(it->slot, walk_fp_at(it))) == it->fp);
}

/* Whether the oldest remembered frame still stands on what it stood on. */
INLINE int base_holds(const struct walker *walker) {
    const struct shadow_stack *shadow = &walker->shadow;
    const struct remembered *remembered = &walker->remembered;
    uint32_t base = remembered->base_index;
    if (base == BASE_OUTERMOST || base == BASE_UNKNOWN) {
        return base == BASE_OUTERMOST;
    }
    if (base == BASE_ZERO) {
        return stack_load(remembered->base_slot & ~(uintptr_t)SHADOW_KNOWN) == 0;
    }
    return base <= shadow->top && shadow->slot[base] == remembered->base_slot &&
           shadow->entry[base].pc == remembered->base_pc &&
           shadow->entry[base].context == remembered->base_context;
}

/* Whether this frame's slot holds a guard, as it did. Only a call writes a return slot, or what was
 * called before it calls anything: so that function has not returned since, and all that is older
 * is as it was. (One that signs what it saves may have come by a jump, with the guard.) */
INLINE int guard_holds(const struct walk_frame *it) {
    uintptr_t word;
    if ((it->how & WALK_GUARDED) == 0) {
        return 0;
    }
    word = machine_plain(stack_load(it->slot));
    return guard_is(word) && guard_see_through(word) == remembered_pc(it);
}

/* What called frame `it`: its sp is the CFA of the function of `it`. */
INLINE uintptr_t caller_sp(const struct walker *walker, const struct walk_frame *it) {
    return it != walker->remembered.frame
               ? frame_sp(it[-1].slot, it[-1].sp)
               : frame_sp(walker->remembered.base_slot & ~(uintptr_t)SHADOW_KNOWN,
                          walker->remembered.base_sp);
}

INLINE uint32_t caller_context(const struct walker *walker, const struct walk_frame *it) {
    return it != walker->remembered.frame ? it[-1].context : walker->remembered.base_context;
}

INLINE uint32_t *word_below(uintptr_t cfa, uint32_t word) {
    return (uint32_t *)(cfa - word * sizeof(uint32_t));
}

/* Whether frame `it`, which is there, vouches by its word for all that is older. */
INLINE int word_vouches(const struct walker *walker, const struct walk_frame *it) {
    return walk_word(it) != 0 &&
           (MACHINE_STORES_CONSTANTS || caller_context(walker, it) != 0) && /* not as new ones */
           *word_below(caller_sp(walker, it), walk_word(it)) == caller_context(walker, it);
}

/* Whether signal frame `it[1]`, which is there, still says that it interrupted frame `it`. */
INLINE int interruption_holds(const struct walk_frame *it) {
    struct frame frame;
    if ((it->how & WALK_INTERRUPTED) == 0) {
        return 0;
    }
    step_from_signal(remembered_pc(&it[1]), it[1].slot, it[1].sp, &frame);
    return (frame.pc & MEMTRACE_FRAME_ADDRESS_MASK) == remembered_pc(it) &&
           frame.slot == it->slot && frame.fp == it->fp && machine_same_sp(frame.sp, it->sp);
}

/* Are all frames older than a remembered one what they were? */
struct verdict {
    uint32_t holds;
    uint32_t at; /* the index of the frame that vouches for all older ones than itself, or of the
                  * oldest, which stands on its base; or else how many may still be as they were */
};

/* Remembered frame `newest` is there. Looks outwards, up to a frame word or a guard that vouches
 * for the rest. */
INLINE struct verdict look_at_older(const struct walker *walker, uint32_t newest) {
    const struct walk_frame *oldest = walker->remembered.frame;
    const struct walk_frame *it = &oldest[newest];
    if (guard_holds(it) || word_vouches(walker, it)) {
        return (struct verdict){1, newest};
    }
    if (UNLIKELY(walker->remembered.apart) &&
        walker->remembered.unmappings != LOAD_RELAXED(&stack_unmappings)) {
        return (struct verdict){0, 0}; /* another page may be gone */
    }
    while (it-- != oldest) {
        if (LIKELY(inputs_hold(it) && (it->how & (WALK_WORD_MASK | WALK_UNSURE)) == 0)) {
            continue;
        }
        if (guard_holds(it) ||
            ((it->how & WALK_UNSURE) == 0 && inputs_hold(it) && word_vouches(walker, it))) {
            return (struct verdict){1, (uint32_t)(it - oldest)};
        }
        if (interruption_holds(it)) {
            continue;
        }
        if ((it->how & WALK_UNSURE) != 0 || !inputs_hold(it)) {
            return (struct verdict){0, (uint32_t)(it - oldest)};
        }
    }
    return (struct verdict){(uint32_t)base_holds(walker), 0};
}

/* Whether the next walk had better meet another guard, `gap` frames newer than the one that vouched
 * this time. */
INLINE int wants_guard(const struct walk_world *world, const struct walker *walker, int32_t gap) {
    return ((gap > GUARD_GAP && walker->guarding.compared + gap > GUARD_PRICE) ||
            walker->guarding.unsure != 0) &&
           world->patches && !walker->guarding.is_off && walker->shadow.capacity == 0;
}

/* --- what follows ----------------------------------------------------------------------------- */

/* All that was remembered is forgotten; what comes next stands on this. */
static inline void remembered_start(struct walker *walker, uint32_t base, const struct frame *frame,
                                    uint32_t context) {
    struct remembered *remembered = &walker->remembered;
    remembered->count = 0;
    walker->guarding.voucher = 0;
    walker->guarding.unsure = 0;
    remembered->base_index = base;
    remembered->base_slot = frame->slot | SHADOW_KNOWN;
    remembered->base_pc = frame->pc;
    remembered->base_sp = frame->sp;
    remembered->base_context = context;
    remembered->apart = 0;
    remembered->unmappings = walker->stack.begun;
}

/* A stack that is copied away and back (greenlet) can bring guards that stand for other frames than
 * those remembered. Looks at one frame that the guard of frame `guarded` vouches for. 0, or -1: it
 * did not tell the truth; no more guards on this thread's stack, and nothing is remembered. */
int remembered_check_guard(struct walk_world *world, struct walker *walker, uint32_t guarded);

/* The same for one guard in so many: by chance, since copied stacks may take turns in step with
 * anything regular. */
INLINE int check_guard_by_chance(struct walk_world *world, struct walker *walker,
                                 uint32_t guarded) {
    walker->guarding.chance = walker->guarding.chance * 1664525 + 1013904223;
    return LIKELY(walker->guarding.chance >= UINT32_MAX / GUARD_CHECK)
               ? 0
               : remembered_check_guard(world, walker, guarded);
}

/* Fills the words that proved to stand where they stood in frames that were entered anew. */
INLINE void refill_words(const struct walker *walker, uint32_t voucher, uint32_t newest) {
    for (uint32_t i = voucher; i <= newest; i++) {
        const struct walk_frame *it = &walker->remembered.frame[i];
        uint32_t *word = word_below(caller_sp(walker, it), walk_word(it));
        if (walk_word(it) != 0 && *word == FRAME_WORD_NEW) {
            *word = caller_context(walker, it);
        }
    }
}

/* Remembered frame `newest` was found to be there, with all older ones, as frame `voucher` tells:
 * the walk relies on them. 0: it is a guard that tells, which is not to be trusted, and all is
 * forgotten. */
INLINE int trust_remembered(struct walk_world *world, struct walker *walker, uint32_t newest,
                            uint32_t voucher) {
    walker->guarding.voucher = voucher;
    walker->guarding.compared += (int32_t)(newest - voucher);
    if (guard_holds(&walker->remembered.frame[voucher]) &&
        check_guard_by_chance(world, walker, voucher) != 0) {
        return 0;
    }
    if (LOAD_RELAXED(&world->rules->has_frame_words)) {
        refill_words(walker, voucher, newest);
    }
    return 1;
}

#endif
