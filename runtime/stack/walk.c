/* SPDX-License-Identifier: MIT */
/* walk.c: stepping, looking up, remembering. See walk.h. */
#include "runtime/stack/walk.h"

#include "runtime/base/machine.h"
#include "runtime/base/sys.h"
#include "runtime/stack/cfi.h"
#include "runtime/stack/expression.h"
#include "runtime/stack/libunwind.h"
#include "runtime/stack/remembered.h"
#include "runtime/stack/trail.h"

#include <string.h>

enum { FIRST_CAPACITY = 128, MOST_FRAMES = 1 << 22, LONG_WALK = 64 };
/* So many frames without words are stepped over again rather than remembered. */
enum { MOST_WITHOUT_WORD = 4 };

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
    memset(walker->trails, 0, sizeof walker->trails);
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

/* Signals are held back: a handler that leaves by longjmp must not leave us with the memory that
 * was moved away. */
static COLD int grow(struct walker *walker) {
    size_t old = bytes_of(walker->capacity);
    uint64_t mask = sys_block_signals();
    void *remembered = walker->capacity < MOST_FRAMES
                           ? sys_grow_map(walker->remembered.frame, old, 2 * old)
                           : NULL;
    void *path = NULL;
    if (remembered != NULL) {
        walker->remembered.frame = remembered;
        path = sys_grow_map(walker->path, old, 2 * old);
    }
    if (path != NULL) { /* else remembered is longer than capacity says: harmless */
        walker->path = path;
        walker->capacity *= 2;
    }
    sys_restore_signals(mask);
    return path != NULL ? 0 : -1;
}

/* --- outwards --------------------------------------------------------------------------------- */

/* What a walk came to: a frame whose context is known. */
enum walk_end { AT_NOTHING, AT_OUTERMOST, AT_SHADOW, AT_WORD, AT_REMEMBERED };

/* How far out a walk has come. The remembered frames stay as they are until it comes back. */
struct progress {
    struct frame frame;
    uint32_t count;   /* frames on the path; this one is not */
    uint32_t known;   /* remembered frames that may be this one or older ones */
    uint32_t context; /* of this frame, as the word of the function that it called tells; 0: not */
    uint32_t end;     /* the base of a path that ends here; with BASE_ZERO `frame` is its place */
    uint32_t shadow;  /* the newest slot of the shadow stack that is not below this frame; or 0 */
    int8_t fp_at;     /* as in struct walk_frame */
    uint8_t flags;    /* of this frame: those that the step to it decides */
    uint8_t uses_fp;  /* a CFA was found by the frame pointer */
    uint8_t unsure;   /* a step depended on more than what was read by rules */
    uint8_t words;    /* the path has frame words */
    /* The next frame word may be left over from an earlier call: a signal or lazy binding can come
     * before it is made. Only there: a call to what may allocate comes after its making. */
    uint8_t doubtful;
    uint8_t without_word; /* frames, up to MOST_WITHOUT_WORD + 1 */
};

/* The path's newest function has just been stepped over, to `caller`. Has it a word, and does that
 * tell the caller's context? */
static inline void look_at_word(struct walk_world *world, struct progress *at, struct rule rule,
                                struct walk_frame *newest, const struct frame *caller) {
    uint32_t *word = word_below(frame_sp(caller->slot), rule.frame_word);
    uint32_t value;
    if (UNLIKELY(at->doubtful || (uintptr_t)word < frame_sp(newest->slot))) {
        at->doubtful = 0;
        return;
    }
    value = *word;
    if (value != FRAME_WORD_FRESH && !context_exists(world->tree, value)) {
        return; /* no id: not a word of ours */
    }
    at->words = 1;
    newest->word = (uint16_t)rule.frame_word;
    at->context = value != FRAME_WORD_FRESH ? value : 0;
}

/* Of a frame whose rule is not plain or that was reached by a step that is not sure; notes what the
 * rest of the walk is to know. */
static COLD void note_unusual(const struct walk_world *world, struct rule rule,
                              struct walk_frame *newest, struct progress *at) {
    int skipped = rule.hidden || (world->own_frames_only && !rule.own);
    newest->flags |= (uint8_t)((skipped ? WALK_SKIPPED : 0) | (rule.entry ? WALK_ENTRY : 0) |
                               (rule.plain ? 0 : WALK_UNPATCHED));
    at->doubtful |= rule.kind == RULE_SIGNAL || rule.loader;
}

/* Where a step has led through a guard, or by no plain rule. (A signal may interrupt a guard, too:
 * that one stands in no slot.) */
static COLD void see_through(struct progress *at, struct rule rule, enum step how,
                             struct frame *next) {
    uintptr_t pc = next->pc & ~RULE_EXACT;
    at->flags = (uint8_t)((how == STEP_UNSURE ? WALK_UNSURE : 0) |
                          (rule.kind == RULE_SIGNAL ? WALK_INTERRUPTED : 0));
    at->unsure |= how == STEP_UNSURE;
    if (guard_is(pc)) {
        at->flags |= pc == next->pc ? WALK_GUARDED : 0;
        next->pc = guard_see_through(pc) | (next->pc & RULE_EXACT);
    }
}

/* The path ends with the present frame: does it whenever it comes there? On other stacks than the
 * thread's own that may depend on a word beyond. */
static COLD void note_end(struct walk_world *world, const struct walker *walker,
                          struct progress *at, struct rule rule, enum step how, uintptr_t next) {
    int is_own = stack_holds(&walker->stack, at->frame.slot);
    at->end = BASE_OUTERMOST;
    /* A fiber's stack just ends, in code that nobody called: only our own has a known end. */
    if (how == STEP_LOST && is_own && !world->rules->by_frame_pointer) { /* whose chain just ends */
        space_lost(world->space, MEMTRACE_LOST_FRAMES, 1);
    }
    if (!is_own && how != STEP_END && rule.kind != RULE_UNKNOWN) {
        at->end = BASE_UNKNOWN;
        if (how == STEP_SURE && stack_same_page(next, at->frame.slot)) {
            at->end = BASE_ZERO;
            at->frame.slot = next;
        }
    }
}

/* Puts the present frame, which has this rule, on the path. */
static inline struct walk_frame *put_on_path(const struct walk_world *world, struct walker *walker,
                                             struct progress *at, struct rule rule) {
    struct walk_frame *newest = &walker->path[at->count++];
    newest->code = (at->frame.pc & (MEMTRACE_FRAME_EXACT | MEMTRACE_FRAME_ADDRESS_MASK)) |
                   (uint64_t)rule.module << MEMTRACE_FRAME_MODULE_SHIFT;
    newest->slot = at->frame.slot;
    newest->fp = at->frame.fp;
    newest->word = 0;
    newest->fp_at = rule.own_fp ? 0 : at->fp_at;
    newest->flags = (uint8_t)(at->flags | (rule.may_catch ? WALK_UNPATCHED : 0) |
                              (rule.own_fp ? WALK_OWN_FP : 0));
    if (UNLIKELY(!rule.plain || world->own_frames_only)) {
        struct progress copy = *at; /* so that only this way keeps it in memory */
        note_unusual(world, rule, newest, &copy);
        *at = copy;
    }
    return newest;
}

/* Puts the present frame on the path and steps to the next. 0, or -1: the walk ends here. */
static inline int advance(struct walk_world *world, struct walker *walker, struct progress *at) {
    struct rule rule = rule_cached(world->rules, &walker->rules, at->frame.pc).rule;
    struct walk_frame *newest = put_on_path(world, walker, at, rule);
    struct frame next;
    enum step how;
    at->uses_fp |= rule.kind == RULE_FP;
    how = step(world->rules, &walker->stack, rule, &at->frame, &next);
    if (UNLIKELY(how >= STEP_END || next.pc == 0)) {
        struct progress copy = *at;
        note_end(world, walker, &copy, rule, how, next.slot);
        *at = copy;
        return -1;
    }
    at->flags = 0;
    if (UNLIKELY(how != STEP_SURE || guard_is(next.pc))) {
        struct progress copy = *at;
        struct frame seen = next;
        see_through(&copy, rule, how, &seen);
        *at = copy;
        next = seen;
    }
    if (rule.frame_word != 0) {
        look_at_word(world, at, rule, newest, &next);
    } else {
        at->without_word += at->without_word <= MOST_WITHOUT_WORD;
    }
    at->fp_at = how == STEP_SURE ? (int8_t)rule.fp_offset : 0;
    at->frame = next;
    return 0;
}

/* The newest slot of the shadow stack that is not below this frame. */
static inline uint32_t shadow_skip(struct shadow_stack *shadow, uint32_t index, uintptr_t slot) {
    while ((shadow->slot[index] & ~(uintptr_t)SHADOW_KNOWN) < slot) {
        shadow->slot[index] &= ~(uintptr_t)SHADOW_KNOWN; /* no frame there: a leftover */
        index--;
    }
    return index;
}

/* Whether the present frame has a slot of the shadow stack that tells its context. */
static inline int is_in_shadow(struct walker *walker, struct progress *at) {
    struct shadow_stack *shadow = &walker->shadow;
    at->shadow = shadow_skip(shadow, at->shadow, at->frame.slot);
    return shadow->slot[at->shadow] == (at->frame.slot | SHADOW_KNOWN) &&
           shadow->entry[at->shadow].pc == at->frame.pc;
}

/* Is the present frame remembered, with everything older unchanged? Then it is the newest of those
 * that are known. Leaves only older ones known, else. */
static inline int is_remembered(const struct walker *walker, struct progress *at,
                                uint32_t *voucher) {
    const struct walk_frame *frame = walker->remembered.frame;
    struct verdict verdict;
    uint32_t known = at->known;
    while (known != 0 && frame[known - 1].slot < at->frame.slot) {
        known--;
    }
    at->known = known;
    if (LIKELY(known == 0 || frame[known - 1].slot != at->frame.slot)) {
        return 0;
    }
    at->known = known - 1;
    if (!same_frame(&frame[known - 1], &at->frame) || (at->flags & WALK_UNSURE) != 0) {
        return 0;
    }
    verdict = look_at_older(walker, known - 1);
    *voucher = verdict.at;
    at->known = verdict.holds ? known : verdict.at;
    return (int)verdict.holds;
}

/* Steps outwards to a frame whose context is known. */
INLINE enum walk_end collect(struct walk_world *world, struct walker *walker, struct progress *at,
                             int has_shadow, uint32_t *voucher) {
    for (;;) {
        if (has_shadow && at->shadow != 0 && is_in_shadow(walker, at)) {
            return AT_SHADOW;
        }
        if (is_remembered(walker, at, voucher)) {
            return AT_REMEMBERED;
        }
        if (at->context != 0) {
            return AT_WORD;
        }
        if (UNLIKELY(at->known + at->count + 2 >= walker->capacity) && grow(walker) != 0) {
            space_lost(world->space, MEMTRACE_LOST_FRAMES, 1);
            return AT_OUTERMOST;
        }
        if (advance(world, walker, at) != 0) {
            return AT_OUTERMOST; /* nothing older is known: the path starts here */
        }
    }
}

/* --- and back --------------------------------------------------------------------------------- */

/* All that was remembered is forgotten; what comes next stands on this. */
static inline void remember_above(struct walker *walker, uint32_t base, const struct frame *frame,
                                  uint32_t context) {
    struct remembered *remembered = &walker->remembered;
    remembered->count = 0;
    walker->guarding.voucher = 0;
    walker->guarding.unsure = 0;
    remembered->base_index = base;
    remembered->base_slot = frame->slot | SHADOW_KNOWN;
    remembered->base_pc = frame->pc;
    remembered->base_context = context;
    remembered->apart = 0;
    remembered->unmappings = walker->stack.begun;
}

/* Field by field: what was just stored so is not read back in one piece without a stall. */
static inline void remember(struct walker *walker, const struct walk_frame *it, uint32_t context) {
    struct remembered *remembered = &walker->remembered;
    struct walk_frame *to = &remembered->frame[remembered->count];
    to->code = it->code;
    to->slot = it->slot;
    to->fp = it->fp;
    to->context = context;
    to->word = it->word;
    to->fp_at = it->fp_at;
    to->flags = it->flags;
    SIGNAL_FENCE(); /* a handler may leave by longjmp: what counts is whole */
    remembered->count++;
    if (UNLIKELY((it->flags & (WALK_UNSURE | WALK_INTERRUPTED)) == WALK_UNSURE)) {
        walker->guarding.unsure = remembered->count;
    }
}

static inline struct context_id child_of(struct walk_world *world, struct walker *walker,
                                         struct context_id parent, const struct walk_frame *it,
                                         enum context_kind kind) {
    uint64_t frame = it->code;
    if (UNLIKELY((it->flags & (WALK_SKIPPED | WALK_ENTRY)) != 0)) {
        if (it->flags & WALK_SKIPPED) {
            return parent;
        }
        frame |= MEMTRACE_FRAME_EXACT;
    }
    return context_cached_child(world->tree, &walker->cache, parent, frame, kind);
}

/* The shadow slot of this frame, from `index` inwards; 0: it has none. Moves *index to the last
 * slot that is not newer. */
static inline uint32_t shadow_find(const struct shadow_stack *shadow, uint32_t *index,
                                   uintptr_t slot) {
    uint32_t at = *index;
    while (at < shadow->top && (shadow->slot[at + 1] & ~(uintptr_t)SHADOW_KNOWN) >= slot) {
        at++;
    }
    *index = at;
    return (shadow->slot[at] & ~(uintptr_t)SHADOW_KNOWN) == slot ? at : 0;
}

/* Fills the shadow slot of a frame whose parent's context is known, and remembers from there. */
static inline struct context_id fill_shadow(struct walk_world *world, struct walker *walker,
                                            uint32_t index, const struct walk_frame *it,
                                            struct context_id parent, enum context_kind kind) {
    struct shadow_stack *shadow = &walker->shadow;
    const struct shadow_entry *memo = &shadow->entry[index];
    struct frame frame = {remembered_pc(it) | (it->code & RULE_EXACT), it->slot, it->fp};
    struct context_id context =
        memo->pc == frame.pc && memo->parent == parent.value && memo->context != 0
            ? (struct context_id){memo->context}
            : child_of(world, walker, parent, it, kind);
    shadow->entry[index] = (struct shadow_entry){frame.pc, parent.value, context.value};
    SIGNAL_FENCE();
    shadow->slot[index] |= SHADOW_KNOWN;
    remember_above(walker, index, &frame, context.value);
    return context;
}

/* How frame `it`, which is not on the thread's own stack, was reached: from the frame `newer`.
 * Whether its words may be compared later where all newer ones are what they were. */
static COLD int may_follow(struct walker *walker, struct walk_frame *it,
                           const struct walk_frame *newer) {
    int apart = !stack_same_page(it->slot, newer->slot);
    /* Another thread may run there and place the like of a guard that this one remembers. */
    it->flags = (uint8_t)((it->flags | WALK_UNPATCHED) & ~WALK_GUARDED);
    walker->remembered.apart |= apart;
    return !apart || stack_is_called(remembered_pc(newer) | (newer->code & RULE_EXACT), it->slot);
}

/* Remembers a frame of the path, or that its words may not be compared later. */
INLINE void remember_reached(struct walker *walker, uint32_t i, struct context_id context) {
    struct walk_frame *it = &walker->path[i];
    if (LIKELY(stack_holds(&walker->stack, it->slot)) ||
        may_follow(walker, it, &walker->path[i != 0 ? i - 1 : 0])) {
        remember(walker, it, context.value);
    } else {
        struct frame frame = {.pc = remembered_pc(it), .slot = it->slot};
        remember_above(walker, BASE_UNKNOWN, &frame, context.value);
    }
}

/* From the oldest frame of the path to the newest, from the context of what called it, whose sp is
 * `sp`. `is_plain`: all frames are on the thread's own stack, there are no words and no shadow
 * stack. */
INLINE struct context_id come_back(struct walk_world *world, struct walker *walker,
                                   const struct progress *at, struct context_id context,
                                   int is_remembering, int is_plain) {
    uint32_t shadow_index = at->shadow;
    uintptr_t sp = frame_sp(at->frame.slot);
    for (uint32_t i = at->count; i-- > 0;) {
        const struct walk_frame *it = &walker->path[i];
        enum context_kind kind = i == 0 ? CONTEXT_CHARGED : CONTEXT_INNER;
        uint32_t index = 0;
        if (!is_plain) {
            if (it->word != 0) {
                *word_below(sp, it->word) = context.value;
            }
            sp = frame_sp(it->slot);
            if (walker->shadow.capacity != 0) {
                index = shadow_find(&walker->shadow, &shadow_index, it->slot);
            }
            is_remembering |= index != 0;
        }
        context = index != 0 ? fill_shadow(world, walker, index, it, context, kind)
                             : child_of(world, walker, context, it, kind);
        if (is_remembering && index == 0) {
            is_plain ? remember(walker, it, context.value) : remember_reached(walker, i, context);
        }
    }
    return context;
}

/* What is remembered of the allocation's caller is enough to know it again, if it is. */
static inline void note_last(struct walker *walker, const struct frame *frame) {
    const struct walk_frame *end = walker->remembered.frame + walker->remembered.count;
    walker->last.pc = walker->last.counted_pc = 0;
    if (end != walker->remembered.frame && same_frame(&end[-1], frame)) {
        walker->last = (struct walk_last){
            .pc = frame->pc,
            .slot = frame->slot,
            .fp = frame->fp,
            .word =
                end[-1].word != 0 ? word_below(caller_sp(walker, &end[-1]), end[-1].word) : NULL,
            .parent = caller_context(walker, &end[-1]),
            .context = end[-1].context};
    }
}

/* At the end of a path over frame words: that of the allocating function vouches next time. */
static inline void note_word(struct walker *walker, const struct frame *frame, uint32_t *word,
                             uint32_t parent, uint32_t context) {
    walker->last.pc = walker->last.counted_pc = 0;
    if (word != NULL) {
        *word = parent;
        walker->last =
            (struct walk_last){frame->pc, frame->slot, frame->fp, word, parent, context, 0, NULL};
    }
}

/* --- trails ----------------------------------------------------------------------------------- */

/* Adds what was read to come to `caller_slot` and there. */
static inline int add_step(struct walk_trail *trail, uintptr_t slot, int8_t fp_at, int uses_fp) {
    return trail_add(trail, slot) &&
           (!uses_fp || fp_at == 0 || trail_add(trail, frame_place(slot, fp_at)));
}

/* Leads the trail on, over remembered frames from `from` outwards, to the guard of `guarded`. */
static inline int lead_to_guard(const struct walker *walker, struct walk_trail *trail,
                                uint32_t from, uint32_t guarded, int uses_fp) {
    const struct walk_frame *frame = walker->remembered.frame;
    for (uint32_t i = from; i-- > guarded;) {
        if (frame[i].word != 0 || !add_step(trail, frame[i].slot, frame[i].fp_at, uses_fp)) {
            return 0;
        }
    }
    return 1;
}

static inline int is_on_own_stack(const struct walker *walker, uintptr_t newest, uintptr_t oldest) {
    return stack_holds(&walker->stack, newest) && stack_holds(&walker->stack, oldest);
}

/* Keeps the path from here, if it is one that its words alone determine. It was remembered, above
 * frame `base`, for whose older ones frame `voucher` vouched. */
static void keep_trail(struct walker *walker, const struct frame *from, const struct progress *at,
                       uint32_t base, uint32_t voucher, uint32_t context) {
    const struct walk_frame *frame = walker->remembered.frame;
    const struct walk_frame *newest = &frame[walker->remembered.count - 1];
    struct walk_trail *trail;
    int is_own = is_on_own_stack(walker, from->slot, frame[base].slot);
    int is_guarded = is_own && guard_holds(&frame[voucher]);
    int uses_fp;
    uint32_t end;
    if (at->unsure || at->words || at->count > TRAIL_MOST ||
        (!is_own && !stack_same_page(from->slot, frame[base].slot)) ||
        (trail = trail_begin(&walker->trails[trail_set_of(from)], from)) == NULL) {
        return;
    }
    uses_fp = at->uses_fp || base != voucher || !(is_guarded || frame[base].flags & WALK_OWN_FP);
    for (const struct walk_frame *it = newest; it-- != &frame[base];) {
        if (!add_step(trail, it->slot, it->fp_at, uses_fp)) {
            return;
        }
    }
    end = is_guarded && lead_to_guard(walker, trail, base, voucher, uses_fp) ? voucher : base;
    if ((frame[end].flags & WALK_SKIPPED) != 0) {
        return; /* its context is its caller's, too */
    }
    trail->needs_fp = uses_fp && (newest->flags & WALK_OWN_FP) == 0;
    trail->end = end == voucher && is_guarded ? TRAIL_GUARD : TRAIL_REMEMBERED;
    trail->gap = (uint8_t)(base - end);
    trail->end_index = end;
    trail->end_at = frame[end].slot;
    trail->end_fp = frame[end].fp;
    trail->end_context = frame[end].context;
    trail->context = context;
    SIGNAL_FENCE();
    trail->from.pc = from->pc;
}

/* The same where a frame word ended the path, over which alone the walk came back. */
static void keep_word_trail(struct walker *walker, const struct frame *from,
                            const struct progress *at, uint32_t context) {
    const struct walk_frame *path = walker->path;
    uintptr_t caller = at->count > 1 ? path[1].slot : at->frame.slot;
    uint32_t *word = path[0].word != 0 ? word_below(frame_sp(caller), path[0].word) : NULL;
    uint32_t parent = word != NULL ? *word : 0;
    struct walk_trail *trail;
    note_word(walker, from, word, parent, context);
    if (at->count > TRAIL_MOST ||
        (!is_on_own_stack(walker, from->slot, at->frame.slot) &&
         !stack_same_page(from->slot, at->frame.slot)) ||
        (trail = trail_begin(&walker->trails[trail_set_of(from)], from)) == NULL) {
        return;
    }
    for (uint32_t i = 1; i < at->count; i++) {
        if (!add_step(trail, path[i].slot, path[i].fp_at, at->uses_fp)) {
            return;
        }
    }
    trail->needs_fp = at->uses_fp && (path[0].flags & WALK_OWN_FP) == 0;
    trail->end = TRAIL_WORD;
    trail->end_at = (uintptr_t)word_below(frame_sp(at->frame.slot), path[at->count - 1].word);
    trail->end_context = at->context;
    trail->word = word;
    trail->parent = parent;
    trail->context = context;
    SIGNAL_FENCE();
    trail->from.pc = from->pc;
}

/* Whether the trail's end is what it was: with all that is older, if it is a remembered frame. */
static inline int end_holds(const struct walker *walker, const struct walk_trail *trail,
                            struct verdict *verdict) {
    const struct walk_frame *it = &walker->remembered.frame[trail->end_index];
    *verdict = (struct verdict){1, trail->end_index};
    if (trail->end == TRAIL_WORD) {
        return *(const uint32_t *)trail->end_at == trail->end_context;
    }
    if (trail->end_index >= walker->remembered.count || it->slot != trail->end_at ||
        it->context != trail->end_context) {
        return 0;
    }
    if (trail->end == TRAIL_GUARD) {
        return (it->flags & WALK_GUARDED) != 0;
    }
    if ((it->flags & WALK_OWN_FP) == 0 && it->fp != trail->end_fp) {
        return 0;
    }
    *verdict = look_at_older(walker, trail->end_index);
    return (int)verdict->holds;
}

/* What is to be done where a trail holds. 0: a guard fails, or there is to be another. */
static inline int take(struct walk_world *world, struct walker *walker,
                       const struct walk_trail *trail, uint32_t voucher) {
    int32_t gap = trail->gap + (int32_t)(trail->end_index - voucher);
    if (trail->end == TRAIL_WORD) {
        note_word(walker, &trail->from, trail->word, trail->parent, trail->context);
        return 1;
    }
    walker->guarding.compared += trail->gap;
    return recognise(world, walker, trail->end_index, voucher) && !wants_guard(world, walker, gap);
}

/* The context, where the whole path is known; 0: it is not. */
static inline uint32_t follow_trail(struct walk_world *world, struct walker *walker,
                                    const struct frame *from) {
    struct trail_set *set = &walker->trails[trail_set_of(from)];
    struct verdict verdict;
    if (trail_is_seldom(set)) {
        return 0;
    }
    for (uint32_t way = 0; way < TRAIL_WAYS; way++) {
        const struct walk_trail *trail = &set->way[way];
        if (trail_holds(trail, from) && end_holds(walker, trail, &verdict) &&
            take(world, walker, trail, verdict.at)) {
            set->missed = 0;
            return trail->context;
        }
    }
    return 0;
}

/* --- the walk --------------------------------------------------------------------------------- */

/* Few frames lie before the word that ended the path: stepping over them again costs less than
 * remembering and comparing them. */
static inline int is_brief(const struct walk_world *world, const struct walker *walker,
                           const struct progress *at) {
    return at->without_word <= MOST_WITHOUT_WORD && !at->unsure && walker->shadow.capacity == 0 &&
           !world->own_frames_only;
}

/* What the walk came to is what the path stands on from now on. */
static inline struct context_id stand_on(struct walker *walker, const struct progress *at,
                                         enum walk_end end, int is_brief_path) {
    struct context_id context = {0};
    struct walk_frame *known = &walker->remembered.frame[at->known];
    switch (end) {
    case AT_REMEMBERED:
        walker->remembered.count = at->known;
        context.value = known[-1].context;
        if (at->count != 0 && (known[-1].flags & WALK_OWN_FP) == 0) {
            known[-1].fp_at = at->fp_at; /* its callee's doing, and that is another now */
        }
        if (UNLIKELY(at->count != 0 && !stack_holds(&walker->stack, known[-1].slot)) &&
            !may_follow(walker, &known[-1], &walker->path[at->count - 1])) {
            remember_above(walker, BASE_UNKNOWN, &at->frame, context.value);
        }
        break;
    case AT_SHADOW:
        context.value = walker->shadow.entry[at->shadow].context;
        remember_above(walker, at->shadow, &at->frame, context.value);
        break;
    case AT_WORD:
        context.value = at->context;
        if (is_brief_path) {
            walker->remembered.count = at->known;
        } else {
            remember_above(walker, BASE_UNKNOWN, &at->frame, context.value);
        }
        break;
    default:
        remember_above(walker, at->end, &at->frame, 0);
    }
    return context;
}

static __attribute__((noinline)) struct context_id
walk(struct walk_world *world, struct walker *walker, uintptr_t pc, uintptr_t slot, uintptr_t fp) {
    struct frame from = {pc, slot, fp};
    struct progress at = {.frame = from,
                          .known = walker->remembered.count,
                          .shadow = walker->shadow.capacity != 0 ? walker->shadow.top : 0};
    struct context_id context;
    int is_brief_path;
    uint32_t voucher = 0;
    enum walk_end end;
    stack_begin(&walker->stack, slot);
    end = LIKELY(at.shadow == 0) ? collect(world, walker, &at, 0, &voucher)
                                 : collect(world, walker, &at, 1, &voucher);
    is_brief_path = end == AT_WORD && is_brief(world, walker, &at);
    if (end == AT_REMEMBERED && !recognise(world, walker, at.known - 1, voucher)) {
        return walk(world, walker, pc, slot, fp); /* nothing is remembered any more */
    }
    context = stand_on(walker, &at, end, is_brief_path);
    if (is_brief_path) {
        context = come_back(world, walker, &at, context, 0, 0);
        keep_word_trail(walker, &from, &at, context.value);
        return context;
    }
    context = LIKELY(!at.words && !at.unsure && walker->shadow.capacity == 0 &&
                     is_on_own_stack(walker, slot, at.frame.slot))
                  ? come_back(world, walker, &at, context, 1, 1)
                  : come_back(world, walker, &at, context, 1, 0);
    if (end == AT_REMEMBERED && at.count != 0 && walker->remembered.count == at.known + at.count) {
        keep_trail(walker, &from, &at, at.known - 1, voucher, context.value);
    }
    if (UNLIKELY(wants_guard(world, walker,
                             (int32_t)(walker->remembered.count - 1 - walker->guarding.voucher)))) {
        remembered_place_guard(walker);
    }
    if (UNLIKELY(at.count > LONG_WALK)) {
        sys_discard(walker->path + LONG_WALK, bytes_of(at.count - LONG_WALK));
    }
    note_last(walker, &from);
    return context;
}

/* All frames as libunwind sees them, each time anew. */
static COLD struct context_id walk_by_libunwind(struct walk_world *world, struct walker *walker,
                                                uintptr_t pc, uintptr_t slot) {
    struct progress at = {.frame = {.pc = pc, .slot = slot}};
    struct libunwind_walk walk;
    int exact = 0;
    if (libunwind_start(world->libunwind, &walk, slot) != 0) {
        return (struct context_id){0};
    }
    do {
        struct rule rule;
        at.frame.pc = guard_see_through(walk.frame.pc) | (exact ? RULE_EXACT : 0);
        rule = rule_find(world->rules, at.frame.pc);
        put_on_path(world, walker, &at, rule);
        exact = rule.kind == RULE_SIGNAL;
    } while (libunwind_step(world->libunwind, &walk) &&
             (at.count + 2 < walker->capacity || grow(walker) == 0));
    return come_back(world, walker, &at, (struct context_id){0}, 0, 0);
}

/* Nothing was called or left since the last allocation. */
static inline int is_repeated(struct walk_world *world, struct walker *walker,
                              const struct frame *frame) {
    uint32_t newest = walker->remembered.count - 1;
    struct verdict verdict;
    if (newest == UINT32_MAX || !same_frame(&walker->remembered.frame[newest], frame)) {
        return 0;
    }
    verdict = look_at_older(walker, newest);
    return verdict.holds && recognise(world, walker, newest, verdict.at) &&
           !wants_guard(world, walker, (int32_t)(newest - verdict.at));
}

struct context_id walk_context_slow(struct walk_world *world, struct walker *walker, uintptr_t pc,
                                    uintptr_t slot, uintptr_t fp) {
    struct frame from = {guard_see_through(pc), slot, fp}; /* malloc may be called by a jump */
    uint32_t context;
    if (UNLIKELY(world->libunwind != NULL)) {
        return walk_by_libunwind(world, walker, from.pc, slot);
    }
    if (UNLIKELY(walker->remembered.generation != LOAD_RELAXED(&world->rules->generation))) {
        remembered_forget(walker, world->rules, slot);
    }
    if (is_repeated(world, walker, &from)) {
        return (struct context_id){walker->remembered.frame[walker->remembered.count - 1].context};
    }
    context = follow_trail(world, walker, &from);
    return context != 0 ? (struct context_id){context} : walk(world, walker, from.pc, slot, fp);
}
