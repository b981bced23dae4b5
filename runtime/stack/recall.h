/* SPDX-License-Identifier: MIT */
/*
 * recall.h: the context of an allocation from what its thread remembers: nothing was called or left
 * since the last one, or a trail leads there. Inlined where that is the hot half of something:
 * walk.c, which goes on with a walk where nothing is known; and follow/allocators_fast.c.
 */
#ifndef RUNTIME_STACK_RECALL_H
#define RUNTIME_STACK_RECALL_H

#include "runtime/stack/remembered.h"

/* At the end of a path over frame words: that of the allocating function vouches next time. */
static inline void note_word(struct walker *walker, const struct frame *frame, uint32_t *word,
                             uint32_t parent, uint32_t context) {
    walker->last.pc = walker->last.counted_pc = 0;
    if (word != NULL) {
        *word = parent;
        walker->last = (struct walk_last){frame->pc, frame->slot, frame->fp, word,     parent,
                                          context,   0,           NULL,      frame->sp};
    }
}

/* Whether the remembered frame that the trail ends at is what it was, with all that is older. */
static inline int end_holds(const struct walker *walker, const struct walk_trail *trail,
                            struct verdict *verdict) {
    const struct walk_frame *it = &walker->remembered.frame[trail->end_index];
    *verdict = (struct verdict){1, trail->end_index};
    if (trail->end == TRAIL_WORD || trail->end_index >= walker->remembered.count ||
        it->slot != trail->end_at || it->context != trail->end_context) {
        return 0;
    }
    if (trail->end == TRAIL_GUARD) {
        return (it->how & WALK_GUARDED) != 0;
    }
    if (((it->how & WALK_OWN_FP) == 0 && it->fp != trail->end_fp) ||
        !machine_same_sp(it->sp, trail->end_sp)) {
        return 0;
    }
    *verdict = look_at_older(walker, trail->end_index);
    return (int)verdict->holds;
}

/* What is to be done where a trail holds. 0: a guard fails, or there is to be another. */
static inline int take(struct walk_world *world, struct walker *walker,
                       const struct walk_trail *trail, uint32_t voucher) {
    if (LIKELY(trail->end == TRAIL_GUARD)) {
        walker->guarding.compared += trail->gap;
        return check_guard_by_chance(world, walker, voucher) == 0 &&
               !wants_guard(world, walker, trail->gap);
    }
    return trust_remembered(world, walker, trail->end_index, voucher) &&
           !wants_guard(world, walker, (int32_t)(trail->end_index - voucher));
}

/* The context, where a trail that ends at a frame word holds; 0: none does. */
static inline uint32_t follow_to_word(struct walker *walker, const struct frame *from) {
    size_t index = trail_set_of(from);
    struct trail_set *set = &walker->trails.set[index];
    const struct walk_trail *first = walker->trails.way[index];
    if (trail_is_seldom(set)) {
        return 0;
    }
    for (const struct walk_trail *trail = first; trail != first + TRAIL_WAYS; trail++) {
        if (trail->end == TRAIL_WORD && trail_holds(trail, from) &&
            *(const uint32_t *)trail->end_at == trail->end_context) {
            set->missed = 0;
            note_word(walker, from, trail->word, trail->parent, trail->context);
            return trail->context;
        }
    }
    return 0;
}

/* The same of those that end at remembered frames. */
static inline uint32_t follow_trail(struct walk_world *world, struct walker *walker,
                                    const struct frame *from) {
    size_t index = trail_set_of(from);
    struct trail_set *set = &walker->trails.set[index];
    struct verdict verdict;
    if (trail_is_seldom(set)) {
        return 0;
    }
    for (uint32_t way = 0; way < TRAIL_WAYS; way++) {
        const struct walk_trail *trail = &walker->trails.way[index][way];
        if (trail_holds(trail, from) && end_holds(walker, trail, &verdict) &&
            take(world, walker, trail, verdict.at)) {
            set->missed = 0;
            return trail->context;
        }
    }
    return 0;
}

/* 1: nothing was called or left since the last allocation, and its context is this one's. */
static inline int follow_newest(struct walk_world *world, struct walker *walker,
                                const struct frame *frame) {
    uint32_t newest = walker->remembered.count - 1;
    struct verdict verdict;
    if (newest == UINT32_MAX || !same_frame(&walker->remembered.frame[newest], frame)) {
        return 0;
    }
    verdict = look_at_older(walker, newest);
    return verdict.holds && trust_remembered(world, walker, newest, verdict.at) &&
           !wants_guard(world, walker, (int32_t)(newest - verdict.at));
}

/* The context of the allocation whose caller this is. 0: it takes a walk to tell
 * (walk_context()). */
static inline uint32_t recall_context(struct walk_world *world, struct walker *walker,
                                      const struct frame *from) {
    uint32_t context = 0;
    if (walk_is_last(walker, from)) {
        return walker->last.context;
    }
    if (UNLIKELY(walker->remembered.generation != LOAD_RELAXED(&world->rules->generation))) {
        return 0;
    }
    if (LOAD_RELAXED(&world->rules->has_frame_words)) {
        context = follow_to_word(walker, from);
    }
    if (context == 0 && follow_newest(world, walker, from)) {
        context = walker->remembered.frame[walker->remembered.count - 1].context;
    }
    return context != 0 ? context : follow_trail(world, walker, from);
}

#endif
