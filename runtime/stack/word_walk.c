/* SPDX-License-Identifier: MIT */
/*
 * word_walk.c: the walk where most frames have words. A few frames were entered since the last
 * allocation, and the word of the next one tells its context: no more is looked at, and nothing
 * need be remembered but the words. Anything unusual is left to walk.c.
 */
#include "runtime/stack/frame_word.h"
#include "runtime/stack/guard.h"
#include "runtime/stack/trail.h"

enum { MOST_FRAMES = 32, MOST_WITHOUT_WORD = 4 };

/* The frames stepped over, newest first. */
struct path {
    struct {
        uint64_t node_frame; /* as in the context tree */
        uintptr_t slot;
        uint32_t *word; /* to be filled with the caller's context; NULL: none */
    } step[MOST_FRAMES];
    uint32_t count;
    uint32_t context; /* of what called the oldest of them */
    int by_sp;        /* all steps were from the stack pointer */
};

/* Steps outwards until a word tells a context. 1, or 0: unusual. */
static inline int collect(struct walk_world *world, const struct stack_bounds *stack,
                          struct frame at, struct path *path) {
    uint32_t without_word = 0;
    path->by_sp = 1;
    for (uint32_t count = 0; count < MOST_FRAMES; count++) {
        struct rule rule = rule_find(world->rules, at.pc);
        uintptr_t cfa = step_cfa(rule, &at);
        uintptr_t word = cfa - rule.frame_word * sizeof(uint32_t);
        if (UNLIKELY(!rule.plain || cfa - sizeof(uintptr_t) <= at.slot || cfa > stack->high ||
                     cfa % sizeof(uintptr_t) != 0 || word <= at.slot)) {
            return 0;
        }
        path->by_sp &= rule.kind == RULE_SP;
        path->step[count].node_frame = (at.pc & MEMTRACE_FRAME_ADDRESS_MASK) |
                                       (uint64_t)rule.module << MEMTRACE_FRAME_MODULE_SHIFT;
        path->step[count].slot = at.slot;
        path->step[count].word = NULL;
        if (LIKELY(rule.frame_word != 0)) {
            uint32_t value = *(uint32_t *)word;
            path->step[count].word = (uint32_t *)word;
            if (value != FRAME_WORD_FRESH) {
                path->context = value;
                path->count = count + 1;
                return context_exists(world->tree, value);
            }
        } else if (++without_word > MOST_WITHOUT_WORD) {
            return 0; /* remembering is cheaper */
        }
        if (rule.fp_offset != 0) {
            uintptr_t place = cfa + (uintptr_t)(intptr_t)rule.fp_offset * sizeof(uintptr_t);
            if (UNLIKELY(place <= at.slot || place >= cfa)) {
                return 0;
            }
            at.fp = stack_load(place);
        }
        at.slot = cfa - sizeof(uintptr_t);
        at.pc = guard_see_through(stack_load(at.slot));
    }
    return 0;
}

/* Where CFA = sp + constant, the return slots are all that was read. */
static inline void keep_trail(struct walk_trail *trail, const struct path *path, uintptr_t pc,
                              uint32_t parent, uint32_t context) {
    int whole = path->by_sp;
    for (uint32_t i = 1; i < path->count && whole; i++) {
        whole = trail_add(trail, path->step[i].slot);
    }
    trail->base_word = path->step[path->count - 1].word;
    trail->base_context = path->context;
    trail->word = path->step[0].word;
    trail->parent = parent;
    trail->context = context;
    SIGNAL_FENCE();
    trail->from.pc = whole ? pc : 0;
}

struct context_id word_walk(struct walk_world *world, struct walker *walker, uintptr_t pc,
                            uintptr_t slot, uintptr_t fp) {
    struct frame from = {pc, slot, fp};
    struct walk_trail *trail;
    struct path path;
    struct context_id context;
    uint32_t parent = 0;
    if (world->own_frames_only || !stack_holds(&walker->stack, slot) ||
        !collect(world, &walker->stack, from, &path)) {
        return (struct context_id){0};
    }
    context.value = path.context;
    for (uint32_t i = path.count; i-- > 0;) {
        if (path.step[i].word != NULL) {
            *path.step[i].word = context.value;
        }
        parent = context.value;
        context =
            context_cached_child(world->tree, &walker->cache, context, path.step[i].node_frame,
                                 i == 0 ? CONTEXT_CHARGED : CONTEXT_INNER);
    }
    trail = trail_begin(walker, world->rules, &from);
    if (trail != NULL) {
        keep_trail(trail, &path, pc, parent, context.value);
    }
    walk_note_word(walker, &from, path.step[0].word, parent, context.value);
    return context;
}
