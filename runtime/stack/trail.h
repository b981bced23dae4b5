/* SPDX-License-Identifier: MIT */
/*
 * trail.h: ways outwards that were taken before. What a walk reads determines where it comes: rules
 * depend on return addresses alone, and each return slot follows from the frame before it. So if
 * all words that a walk read are as they were, it would come the same way to the same frame, and if
 * that frame's context is what it was, to the same context. Ends at a frame word or at a remembered
 * frame, by which all that is older is judged.
 */
#ifndef RUNTIME_STACK_TRAIL_H
#define RUNTIME_STACK_TRAIL_H

#include "runtime/stack/walk.h"

INLINE struct trail_set *trail_set(struct walker *walker, const struct frame *from) {
    _Static_assert(TRAIL_SETS == 1 << (64 - 59), "as many as the hash has values");
    return &walker->trails[((from->pc ^ from->slot << 24) * UINT64_C(0x9e3779b97f4a7c15)) >> 59];
}

/* Whether this trail starts here and nothing on it has changed. All its words lie above the present
 * frame, on the same stack. */
INLINE int trail_holds(const struct walk_trail *trail, const struct rules *rules,
                       const struct frame *from) {
    if (trail->from.pc != from->pc || trail->from.slot != from->slot ||
        (trail->needs_fp && trail->from.fp != from->fp) ||
        trail->generation != LOAD_RELAXED(&rules->generation)) {
        return 0;
    }
    for (uint32_t i = 0; i < trail->count; i++) {
        if (stack_load(from->slot + trail->at[i]) != trail->value[i]) {
            return 0;
        }
    }
    return 1;
}

/* Not this time: where ways hardly ever come again, looking for them and keeping them would cost
 * more than it saves. */
INLINE int trail_is_seldom(const struct trail_set *set) {
    return UNLIKELY(set->missed >= TRAIL_PATIENCE) && set->missed % TRAIL_SELDOM != 0;
}

/* A place for the trail from here, in place of an older one. NULL: not this time. */
INLINE struct walk_trail *trail_begin(struct walker *walker, const struct rules *rules,
                                      const struct frame *from) {
    struct trail_set *set = trail_set(walker, from);
    struct walk_trail *trail;
    int seldom = trail_is_seldom(set);
    set->missed++;
    if (seldom) {
        return NULL;
    }
    trail = &set->way[set->next++ % TRAIL_WAYS];
    trail->from.pc = 0; /* until it is whole, whatever a handler does meanwhile */
    SIGNAL_FENCE();
    trail->from.slot = from->slot;
    trail->from.fp = from->fp;
    trail->needs_fp = 0;
    trail->generation = LOAD_RELAXED(&rules->generation);
    trail->count = 0;
    trail->base_word = NULL;
    return trail;
}

/* The word at `address` was read on the way. 0: it is too long to be kept. */
INLINE int trail_add(struct walk_trail *trail, uintptr_t address) {
    uint32_t i = trail->count;
    if (i == TRAIL_MOST) {
        return 0;
    }
    trail->at[i] = (uint32_t)(address - trail->from.slot);
    trail->value[i] = stack_load(address);
    trail->count = i + 1;
    return 1;
}

/* Whether all words between two frames can be read where the newer one is. */
INLINE int trail_is_readable(const struct stack_bounds *stack, uintptr_t newest, uintptr_t oldest) {
    return stack_same_page(newest, oldest) ||
           (stack_holds(stack, newest) && stack_holds(stack, oldest));
}

/* Keeps the way from here over what was just remembered to remembered frame `base`, if it is one
 * that its words alone determine. */
INLINE void trail_keep(struct walk_world *world, struct walker *walker, const struct frame *from,
                       uint32_t base, uint32_t context) {
    const struct walk_frame *oldest = &walker->remembered[base];
    const struct walk_frame *newest = &walker->remembered[walker->remembered_count - 1];
    struct walk_trail *trail =
        newest - oldest - 1 < TRAIL_MOST &&
                trail_is_readable(&walker->stack, from->slot, oldest->frame.slot)
            ? trail_begin(walker, world->rules, from)
            : NULL;
    if (trail == NULL) {
        return;
    }
    for (const struct walk_frame *it = newest; it-- != oldest;) {
        if ((it[1].flags & (WALK_UNSURE | WALK_HAS_WORD)) != 0 ||
            !trail_add(trail, it->frame.slot) ||
            (it->input_at != 0 &&
             !trail_add(trail, it->frame.slot + (uintptr_t)(intptr_t)it->input_at))) {
            return;
        }
    }
    trail->needs_fp = (newest->flags & WALK_OWN_FP) == 0;
    trail->base_index = base;
    trail->base = oldest->frame;
    trail->base_context = oldest->context;
    trail->context = context;
    SIGNAL_FENCE();
    trail->from.pc = from->pc;
}

#endif
