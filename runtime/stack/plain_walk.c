/* SPDX-License-Identifier: MIT */
/*
 * plain_walk.c: the walk over prebuilt code. A few frames were entered since the last allocation,
 * each with a plain rule, and the next one is remembered with all that is older. Anything unusual
 * is left to walk.c.
 */
#include "runtime/stack/remembered.h"
#include "runtime/stack/trail.h"

enum { MOST_FRAMES = 128 };

/* The frames stepped over, newest first. */
struct path {
    struct {
        uint64_t node_frame; /* as in the context tree; its address is the frame's pc */
        uintptr_t slot;
        uintptr_t fp;
        int32_t input_at; /* where fp was read, from slot on; 0: it was not */
        uint16_t flags;
        uint16_t module;
    } step[MOST_FRAMES];
    uint32_t count;
};

static inline uintptr_t pc_of(uint64_t node_frame) {
    return node_frame & MEMTRACE_FRAME_ADDRESS_MASK;
}

/* Steps outwards to a remembered frame. 1, or 0: unusual, or that is where the walk starts. */
static inline int collect(struct walk_world *world, struct walker *walker, struct frame at,
                          struct path *path) {
    int32_t input_at = 0;
    for (uint32_t count = 0; count < MOST_FRAMES; count++) {
        union rule_word rule;
        uintptr_t cfa;
        path->count = count;
        if (recognise(world, walker, &at) != 0) {
            if (count != 0) {
                note_input(&walker->remembered[walker->remembered_count - 1], input_at);
            }
            return count != 0;
        }
        rule.word = rule_find_word(world->rules, at.pc);
        cfa = rule.rule.kind == RULE_SP ? at.slot + sizeof(uintptr_t) : at.fp;
        cfa += (uintptr_t)(intptr_t)rule.rule.cfa_offset * sizeof(uintptr_t);
        if (UNLIKELY(!rule.rule.plain || rule.rule.frame_word != 0 ||
                     cfa - sizeof(uintptr_t) <= at.slot || cfa > walker->stack.high ||
                     cfa % sizeof(uintptr_t) != 0)) {
            return 0;
        }
        path->step[count].node_frame = at.pc | (uint64_t)rule.rule.module
                                                   << MEMTRACE_FRAME_MODULE_SHIFT;
        path->step[count].slot = at.slot;
        path->step[count].fp = at.fp;
        path->step[count].module = rule.rule.module;
        path->step[count].flags = rule.rule.may_catch ? WALK_UNPATCHED : 0;
        path->step[count].input_at = input_at;
        input_at = 0;
        if (rule.rule.fp_offset != 0) {
            uintptr_t place = cfa + (uintptr_t)(intptr_t)rule.rule.fp_offset * sizeof(uintptr_t);
            if (UNLIKELY(place <= at.slot || place >= cfa)) {
                return 0;
            }
            if (rule.rule.kind == RULE_SP) {
                path->step[count].flags |= WALK_OWN_FP;
            }
            at.fp = stack_load(place);
            input_at = (int32_t)(rule.rule.fp_offset + 1) * (int32_t)sizeof(uintptr_t);
        }
        at.slot = cfa - sizeof(uintptr_t);
        at.pc = stack_load(at.slot);
        if (UNLIKELY(guard_is(at.pc) || at.pc >> (RULE_KEY_BITS - 1) != 0)) {
            return 0;
        }
    }
    return 0;
}

/* From the oldest frame of the path to the newest, each remembered. */
static inline struct context_id come_back(struct walk_world *world, struct walker *walker,
                                          const struct path *path) {
    struct walk_frame *to = walker->remembered + walker->remembered_count;
    struct context_id context = {to[-1].context};
    for (uint32_t i = path->count; i-- > 0; to++) {
        uintptr_t pc = pc_of(path->step[i].node_frame);
        to->frame.pc = pc;
        to->frame.slot = path->step[i].slot;
        to->frame.fp = path->step[i].fp;
        to->parent = context.value;
        to->flags = path->step[i].flags;
        note_input(to, path->step[i].input_at);
        to->module = path->step[i].module;
        to->guard = 0;
        context =
            context_cached_child(world->tree, &walker->cache, context, path->step[i].node_frame,
                                 i == 0 ? CONTEXT_CHARGED : CONTEXT_INNER);
        to->context = context.value;
    }
    SIGNAL_FENCE(); /* a handler may leave by longjmp: what counts is whole */
    walker->remembered_count += path->count;
    return context;
}

struct context_id plain_walk(struct walk_world *world, struct walker *walker, uintptr_t pc,
                             uintptr_t slot, uintptr_t fp) {
    struct frame from = {pc, slot, fp};
    struct context_id context = {0};
    struct path path;
    uint32_t base;
    if (!stack_holds(&walker->stack, slot) || !collect(world, walker, from, &path) ||
        walker->remembered_count + path.count > walker->capacity) {
        return context;
    }
    base = walker->remembered_count - 1;
    context = come_back(world, walker, &path);
    trail_keep(world, walker, &from, base, context.value);
    if (UNLIKELY(wants_guard(world, walker, walker->remembered_count - 1))) {
        remembered_place_guard(walker);
    }
    return context;
}
