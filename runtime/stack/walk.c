/* SPDX-License-Identifier: MIT */
/* walk.c: the walk, and the trails that save it. See walk.h; how they are followed: recall.h. */
#include "runtime/stack/walk.h"

#include "runtime/base/sys.h"
#include "runtime/stack/libunwind.h"
#include "runtime/stack/path.h"
#include "runtime/stack/recall.h"

#include <string.h>

enum { FIRST_CAPACITY = 128, LONG_WALK = 64 };

static size_t bytes_of(uint32_t frames) {
    return frames * sizeof(struct walk_frame);
}

int walk_init(struct walker *walker, uintptr_t low, uintptr_t high) {
    walker->stack = (struct stack_bounds){.low = low, .high = high};
    if (walker->remembered.frame == NULL) {
        walker->capacity = FIRST_CAPACITY;
        walker->remembered.frame = sys_map(bytes_of(FIRST_CAPACITY));
        walker->path = sys_map(bytes_of(FIRST_CAPACITY));
    }
    if (walker->remembered.frame == NULL || walker->path == NULL) {
        walk_free(walker);
        return -1;
    }
    return 0;
}

/* What is true of all stacks stays: the caches, and by which rules they were filled. */
void walk_forget(struct walker *walker) {
    walker->last = (struct walk_last){0};
    walker->remembered.count = 0;
    walker->remembered.base_index = BASE_OUTERMOST;
    walker->remembered.base_context = 0;
    walker->remembered.base_slot = walker->remembered.base_pc = 0;
    walker->guarding = (struct guarding){.chance = walker->guarding.chance};
    for (size_t i = 0; i < TRAIL_SETS; i++) { /* what nothing was kept in was never touched */
        if (walker->trails.set[i].kept != 0) {
            memset(walker->trails.way[i], 0, sizeof walker->trails.way[i]);
        }
    }
    memset(walker->trails.set, 0, sizeof walker->trails.set);
    shadow_free(&walker->shadow);
    if (walker->capacity > FIRST_CAPACITY) { /* of a deep stack */
        walk_free(walker);
    }
}

void walk_free(struct walker *walker) {
    if (walker->remembered.frame != NULL) {
        sys_unmap(walker->remembered.frame, bytes_of(walker->capacity));
    }
    if (walker->path != NULL) {
        sys_unmap(walker->path, bytes_of(walker->capacity));
    }
    walker->remembered.frame = NULL;
    walker->path = NULL;
    shadow_free(&walker->shadow);
}

/* --- what the next allocation can be told from ------------------------------------------------ */

/* What is remembered of the allocation's caller is enough to know it again, where one word vouches
 * for all that is older. */
static inline void note_last(struct walker *walker, const struct frame *frame) {
    const struct walk_frame *end = walker->remembered.frame + walker->remembered.count;
    walker->last.pc = walker->last.counted_pc = 0;
    if (end != walker->remembered.frame && same_frame(&end[-1], frame) &&
        (MACHINE_STORES_CONSTANTS || caller_context(walker, &end[-1]) != 0)) {
        walker->last = (struct walk_last){
            .pc = frame->pc,
            .slot = frame->slot,
            .fp = frame->fp,
            .word = walk_word(&end[-1]) != 0
                        ? word_below(caller_sp(walker, &end[-1]), walk_word(&end[-1]))
                        : NULL,
            .parent = caller_context(walker, &end[-1]),
            .context = end[-1].context,
            .sp = frame->sp};
    }
}

/* --- trails ----------------------------------------------------------------------------------- */

/* Adds where the frame's two frame pointers were read. */
static inline int add_fps(struct walk_trail *trail, const struct walk_frame *it) {
    uint32_t first = frame_first_fp_below(walk_fp_at(it));
    uint32_t second = frame_second_fp_below(walk_fp_at(it));
    return (first == 0 || trail_add(trail, it->slot - first * sizeof(uintptr_t))) &&
           (second == 0 || trail_add(trail, it->slot - second * sizeof(uintptr_t)));
}

/* Adds the frames of `from` up to `to` outwards, which are remembered. */
static int add_frames(struct walk_trail *trail, const struct walk_frame *from,
                      const struct walk_frame *to, int uses_fp) {
    for (const struct walk_frame *it = from; it-- != to;) {
        if (!trail_add(trail, it->slot)) {
            return 0;
        }
        if (MACHINE_HAS_SECOND_FP
                ? uses_fp && !add_fps(trail, it)
                : uses_fp && walk_fp_at(it) != 0 &&
                      !trail_add(trail, frame_fp_place(it->slot, walk_fp_at(it)))) {
            return 0;
        }
    }
    return 1;
}

static inline int is_on_own_stack(const struct walker *walker, uintptr_t newest, uintptr_t oldest) {
    return stack_holds(&walker->stack, newest) && stack_holds(&walker->stack, oldest);
}

/* Keeps the path from here, if it is one that its words alone determine. It was remembered, above
 * frame `base`, for whose older ones frame `voucher` vouched. If that has a guard, the trail leads
 * there. */
static __attribute__((noinline)) void keep_trail(struct walker *walker, const struct frame *from,
                                                 uint32_t base, uint32_t voucher) {
    const struct walk_frame *frame = walker->remembered.frame;
    const struct walk_frame *newest = &frame[walker->remembered.count - 1];
    int is_own = is_on_own_stack(walker, from->slot, frame[base].slot);
    int is_guarded =
        is_own && guard_holds(&frame[voucher]) && newest - &frame[voucher] <= (ptrdiff_t)TRAIL_MOST;
    uint32_t end = is_guarded ? voucher : base;
    uint32_t how = 0;
    struct walk_trail *trail;
    int uses_fp;
    for (const struct walk_frame *it = newest; it != &frame[end]; it--) {
        how |= it->how;
    }
    if ((how & (WALK_UNSURE | WALK_WORD_MASK)) != 0 || (frame[end].how & WALK_SKIPPED) != 0 ||
        (!is_own && !stack_same_page(from->slot, frame[base].slot))) {
        return; /* (what is skipped has the context of its caller) */
    }
    uses_fp = (how & WALK_BY_FP) != 0 || (!is_guarded && (frame[end].how & WALK_OWN_FP) == 0);
    trail = trail_begin(&walker->trails, from);
    if (!add_frames(trail, newest, &frame[end], uses_fp)) {
        return;
    }
    trail->needs_fp = uses_fp && (newest->how & WALK_OWN_FP) == 0;
    trail->end = is_guarded ? TRAIL_GUARD : TRAIL_REMEMBERED;
    trail->gap = (uint8_t)(base - end);
    trail->end_index = end;
    trail->end_at = frame[end].slot;
    trail->end_fp = frame[end].fp;
    trail->end_sp = frame[end].sp;
    trail->end_context = frame[end].context;
    trail->context = newest->context;
    SIGNAL_FENCE();
    trail->from.pc = from->pc;
}

/* The same where a frame word ended the path, over which alone the walk came back. */
static void keep_word_trail(struct walker *walker, const struct frame *from, const struct path *at,
                            uint32_t context) {
    const struct walk_frame *path = walker->path;
    uintptr_t caller =
        at->count > 1 ? frame_sp(path[1].slot, path[1].sp) : frame_sp(at->frame.slot, at->frame.sp);
    uint32_t *word = walk_word(&path[0]) != 0 ? word_below(caller, walk_word(&path[0])) : NULL;
    uint32_t parent = word != NULL ? *word : 0;
    struct walk_trail *trail;
    uint32_t how = path[0].how;
    note_word(walker, from, word, parent, context);
    if ((!is_on_own_stack(walker, from->slot, at->frame.slot) &&
         !stack_same_page(from->slot, at->frame.slot)) ||
        !trail_is_worth(&walker->trails.set[trail_set_of(from)], context)) {
        return;
    }
    trail = trail_begin(&walker->trails, from);
    for (uint32_t i = 1; i < at->count; i++) {
        how |= path[i].how;
        if (!trail_add(trail, path[i].slot)) {
            return;
        }
    }
    if ((how & WALK_BY_FP) != 0) {
        return;
    }
    trail->end = TRAIL_WORD;
    trail->end_at = (uintptr_t)word_below(frame_sp(at->frame.slot, at->frame.sp),
                                          walk_word(&path[at->count - 1]));
    trail->end_context = at->context;
    trail->word = word;
    trail->parent = parent;
    trail->context = context;
    SIGNAL_FENCE();
    trail->from.pc = from->pc;
}

/* --- the walk --------------------------------------------------------------------------------- */

/* What the walk came to is what the path stands on from now on. */
static inline struct context_id stand_on(struct walker *walker, const struct path *at,
                                         enum path_end end, int is_brief) {
    struct context_id context = {0};
    struct walk_frame *known = &walker->remembered.frame[at->known];
    switch (end) {
    case AT_REMEMBERED:
        walker->remembered.count = at->known;
        context.value = known[-1].context;
        /* Where its fp was read is its callee's doing, and that is another now. */
        if (at->count != 0 && (known[-1].how & WALK_OWN_FP) == 0) {
            known[-1].how = (known[-1].how & ~walk_fp_bits(-1)) | walk_fp_bits(at->fp_at);
        }
        if (UNLIKELY(at->count != 0 && !stack_holds(&walker->stack, known[-1].slot)) &&
            !path_may_follow(walker, &known[-1], &walker->path[at->count - 1])) {
            remembered_start(walker, BASE_UNKNOWN, &at->frame, context.value);
        }
        break;
    case AT_SHADOW:
        context.value = walker->shadow.entry[at->shadow].context;
        remembered_start(walker, at->shadow, &at->frame, context.value);
        break;
    case AT_WORD:
        context.value = at->context;
        if (is_brief) {
            walker->remembered.count = at->known;
        } else {
            remembered_start(walker, BASE_UNKNOWN, &at->frame, context.value);
        }
        break;
    default:
        remembered_start(walker, at->end, &at->frame, 0);
    }
    return context;
}

/* All frames as libunwind sees them, each time anew. */
static COLD struct context_id walk_by_libunwind(struct walk_world *world, struct walker *walker,
                                                uint64_t pc, uintptr_t slot, struct machine_sp sp) {
    struct path at = {.frame = {.pc = pc, .slot = slot}, .odd = ODD_STACK};
    struct libunwind_walk walk;
    int exact = 0;
    if (libunwind_start(world->libunwind, &walk, frame_sp(slot, sp)) != 0) {
        return (struct context_id){0};
    }
    do {
        struct rule rule;
        at.frame.pc = guard_see_through(walk.frame.pc) | (exact ? RULE_EXACT : 0);
        rule = rule_find(world->rules, at.frame.pc);
        path_add(world, walker, &at, rule);
        exact = rule.kind == RULE_SIGNAL;
    } while (libunwind_step(world->libunwind, &walk) &&
             (at.count + 2 < walker->capacity || path_grow(walker) == 0));
    return path_come_back(world, walker, &at, (struct context_id){0}, 0);
}

/* What the next walk will be glad of, after one that remembered its path. */
static inline void prepare_next(struct walk_world *world, struct walker *walker,
                                const struct frame *from, const struct path *at) {
    uint32_t count = walker->remembered.count;
    if (UNLIKELY(wants_guard(world, walker, (int32_t)(count - 1 - walker->guarding.voucher)))) {
        remembered_place_guard(walker);
    }
    if (UNLIKELY(at->count > LONG_WALK)) {
        sys_discard(walker->path + LONG_WALK, bytes_of(at->count - LONG_WALK));
    }
    if (LIKELY(at->odd == 0)) {
        walker->last.pc = walker->last.counted_pc = 0; /* no word vouches for anything */
    } else {
        note_last(walker, from);
    }
}

static __attribute__((noinline)) struct context_id walk(struct walk_world *world,
                                                        struct walker *walker, uint64_t pc,
                                                        uintptr_t slot, uintptr_t fp,
                                                        struct machine_sp sp) {
    struct frame from = {guard_see_through(pc), slot, fp, sp}; /* malloc may be called by a jump */
    int has_shadow = walker->shadow.capacity != 0;
    struct path at = {.frame = from,
                      .known = walker->remembered.count,
                      .odd = has_shadow || !stack_holds(&walker->stack, slot) ? ODD_STACK : 0,
                      .shadow = has_shadow ? walker->shadow.top : 0};
    struct context_id context;
    uint32_t voucher = 0;
    enum path_end end;
    int is_brief; /* over words, of which alone something is remembered */
    if (UNLIKELY(world->libunwind != NULL)) {
        return walk_by_libunwind(world, walker, from.pc, slot, sp);
    }
    stack_begin(&walker->stack, slot);
    at.seeks_word =
        LOAD_RELAXED(&world->rules->has_frame_words) && !has_shadow && !world->own_frames_only;
    end = path_go_out(world, walker, &at, &voucher);
    is_brief = end == AT_WORD && at.seeks_word;
    if (end == AT_REMEMBERED && !trust_remembered(world, walker, at.known - 1, voucher)) {
        return walk(world, walker, pc, slot, fp, sp); /* nothing is remembered any more */
    }
    context = stand_on(walker, &at, end, is_brief);
    context = path_come_back(world, walker, &at, context, !is_brief);
    if (is_brief) {
        keep_word_trail(walker, &from, &at, context.value);
        return context;
    }
    if (end == AT_REMEMBERED && at.count != 0 && walker->remembered.count == at.known + at.count &&
        trail_is_worth(&walker->trails.set[trail_set_of(&from)], context.value)) {
        keep_trail(walker, &from, at.known - 1, voucher);
    }
    prepare_next(world, walker, &from, &at);
    return context;
}

/* From what is remembered, or by a walk. */
static __attribute__((noinline)) struct context_id recall(struct walk_world *world,
                                                          struct walker *walker, uint64_t pc,
                                                          uintptr_t slot, uintptr_t fp,
                                                          struct machine_sp sp) {
    struct frame from = {pc, slot, fp, sp};
    uint32_t context;
    if (follow_newest(world, walker, &from)) {
        return (struct context_id){walker->remembered.frame[walker->remembered.count - 1].context};
    }
    context = follow_trail(world, walker, &from);
    return context != 0 ? (struct context_id){context} : walk(world, walker, pc, slot, fp, sp);
}

/* What words alone tell is looked at first, by as little code as can be. */
struct context_id walk_context_slow(struct walk_world *world, struct walker *walker, uint64_t pc,
                                    uintptr_t slot, uintptr_t fp, struct machine_sp sp) {
    struct frame from = {pc, slot, fp, sp};
    uint32_t context = 0;
    if (UNLIKELY(walker->remembered.generation != LOAD_RELAXED(&world->rules->generation))) {
        remembered_forget(walker, world->rules, slot);
    }
    if (LOAD_RELAXED(&world->rules->has_frame_words)) {
        context = follow_to_word(walker, &from);
    }
    return context != 0 ? (struct context_id){context} : recall(world, walker, pc, slot, fp, sp);
}
