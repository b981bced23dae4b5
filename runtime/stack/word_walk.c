/* SPDX-License-Identifier: MIT */
/*
 * word_walk.c: the walk where most frames have words. A few frames were entered since the last
 * allocation, and the word of the next one tells its context: no more is looked at, and nothing
 * need be remembered but the words. Anything unusual is left to walk.c.
 */
#include "runtime/stack/frame_word.h"
#include "runtime/stack/guard.h"
#include "runtime/stack/walk.h"

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

static inline size_t trail_set(uintptr_t pc, uintptr_t slot) {
    return ((pc ^ slot << 24) * UINT64_C(0x9e3779b97f4a7c15)) >> 60;
}

_Static_assert(TRAIL_SETS == 1 << (64 - 60), "as many as trail_set() tells");

/* Whether the way is the one it was. All its slots lie above the present one, on the same stack. */
static inline int trail_holds(const struct walk_trail *trail, const struct rules *rules,
                              uintptr_t pc, uintptr_t slot) {
    if (trail->pc != pc || trail->slot != slot ||
        trail->generation != LOAD_RELAXED(&rules->generation)) {
        return 0;
    }
    for (uint32_t i = 0; i < trail->count; i++) {
        if (stack_load(slot + trail->at[i]) != trail->next_pc[i]) {
            return 0;
        }
    }
    return *trail->base == trail->base_context;
}

/* The trail that leads from here to where it led; NULL: none. */
static inline struct walk_trail *find_trail(struct walk_trail *set, const struct rules *rules,
                                            uintptr_t pc, uintptr_t slot) {
    for (uint32_t way = 0; way < TRAIL_WAYS; way++) {
        if (trail_holds(&set[way], rules, pc, slot)) {
            return &set[way];
        }
    }
    return NULL;
}

static inline void keep_trail(struct walk_trail *trail, const struct rules *rules,
                              const struct path *path, uintptr_t pc) {
    uintptr_t slot = path->step[0].slot;
    trail->pc = 0;
    if (!path->by_sp || path->count > TRAIL_MOST + 1) {
        return;
    }
    for (uint32_t i = 1; i < path->count; i++) {
        trail->at[i - 1] = (uint32_t)(path->step[i].slot - slot);
        trail->next_pc[i - 1] = stack_load(path->step[i].slot);
    }
    trail->pc = pc;
    trail->slot = slot;
    trail->generation = LOAD_RELAXED(&rules->generation);
    trail->count = path->count - 1;
    trail->base = path->step[path->count - 1].word;
    trail->base_context = path->context;
}

static inline struct context_id finish(struct walker *walker, const struct walk_trail *trail,
                                       uintptr_t pc, uintptr_t slot, uintptr_t fp) {
    walker->last.pc = 0;
    if (trail->word != NULL) {
        *trail->word = trail->parent;
        walk_note_last(walker, (struct frame){pc, slot, fp}, trail->word, trail->parent,
                       trail->context);
    }
    return (struct context_id){trail->context};
}

struct context_id word_walk(struct walk_world *world, struct walker *walker, uintptr_t pc,
                            uintptr_t slot, uintptr_t fp) {
    struct walk_trail *set = walker->trail[trail_set(pc, slot)];
    struct walk_trail *trail = find_trail(set, world->rules, pc, slot);
    struct path path;
    struct context_id context;
    if (LIKELY(trail != NULL)) {
        return finish(walker, trail, pc, slot, fp);
    }
    if (world->own_frames_only || !stack_holds(&walker->stack, slot) ||
        !collect(world, &walker->stack, (struct frame){pc, slot, fp}, &path)) {
        return (struct context_id){0};
    }
    trail = &set[walker->trails_kept++ % TRAIL_WAYS];
    keep_trail(trail, world->rules, &path, pc);
    context.value = path.context;
    for (uint32_t i = path.count; i-- > 0;) {
        if (path.step[i].word != NULL) {
            *path.step[i].word = context.value;
        }
        trail->parent = context.value;
        context =
            context_cached_child(world->tree, &walker->cache, context, path.step[i].node_frame,
                                 i == 0 ? CONTEXT_CHARGED : CONTEXT_INNER);
    }
    trail->word = path.step[0].word;
    trail->context = context.value;
    return finish(walker, trail, pc, slot, fp);
}
