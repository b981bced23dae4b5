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

enum { FIRST_CAPACITY = 128, MOST_FRAMES = 1 << 22, LONG_WALK = 64 };

static size_t bytes_of(uint32_t frames) {
    return frames * sizeof(struct walk_frame);
}

int walk_init(struct walker *walker, uintptr_t low, uintptr_t high) {
    walker->capacity = FIRST_CAPACITY;
    walker->stack = (struct stack_bounds){.low = low, .high = high};
    walker->remembered_count = 0;
    walker->remembered = sys_map(bytes_of(FIRST_CAPACITY));
    walker->fresh = sys_map(bytes_of(FIRST_CAPACITY));
    if (walker->remembered == NULL || walker->fresh == NULL) {
        walk_free(walker);
        return -1;
    }
    return 0;
}

void walk_free(struct walker *walker) {
    if (walker->remembered != NULL) {
        sys_unmap(walker->remembered, bytes_of(walker->capacity));
    }
    if (walker->fresh != NULL) {
        sys_unmap(walker->fresh, bytes_of(walker->capacity));
    }
    walker->remembered = NULL;
    walker->fresh = NULL;
    shadow_free(&walker->shadow);
}

/* Signals are held back: a handler that leaves by longjmp must not leave us with the memory that
 * was moved away. */
static COLD int grow(struct walker *walker) {
    size_t old = bytes_of(walker->capacity);
    uint64_t mask = sys_block_signals();
    void *remembered =
        walker->capacity < MOST_FRAMES ? sys_grow_map(walker->remembered, old, 2 * old) : NULL;
    void *fresh = NULL;
    if (remembered != NULL) {
        walker->remembered = remembered;
        fresh = sys_grow_map(walker->fresh, old, 2 * old);
    }
    if (fresh != NULL) { /* else remembered is longer than capacity says: harmless */
        walker->fresh = fresh;
        walker->capacity *= 2;
    }
    sys_restore_signals(mask);
    return fresh != NULL ? 0 : -1;
}

/* The newest slot of the shadow stack that is not below this frame. */
static inline uint32_t shadow_skip(struct shadow_stack *shadow, uint32_t index, uintptr_t slot) {
    while ((shadow->slot[index] & ~(uintptr_t)SHADOW_KNOWN) < slot) {
        shadow->slot[index] &= ~(uintptr_t)SHADOW_KNOWN; /* no frame there: a leftover */
        index--;
    }
    return index;
}

/* --- remembering ------------------------------------------------------------------------------ */

/* All that was remembered is forgotten; what comes next stands on this. */
static inline void remember_above(struct walker *walker, uint32_t base, const struct frame *frame,
                                  uint32_t context) {
    walker->remembered_count = 0;
    walker->vouched = 0;
    walker->unsure = 0;
    walker->base_index = base;
    walker->base_slot = frame->slot | SHADOW_KNOWN;
    walker->base_pc = frame->pc;
    walker->base_context = context;
    walker->apart = 0;
    walker->unmappings = walker->stack.begun;
}

/* Word by word: what was just stored in words is not read back in one piece without a stall. */
static inline void remember(struct walker *walker, const struct walk_frame *fresh, uint32_t parent,
                            uint32_t context) {
    struct walk_frame *to = &walker->remembered[walker->remembered_count];
    to->frame.pc = fresh->frame.pc;
    to->frame.slot = fresh->frame.slot;
    to->frame.fp = fresh->frame.fp;
    to->context = context;
    to->parent = parent;
    to->input = fresh->input;
    to->input_at = fresh->input_at;
    to->frame_word_at = fresh->frame_word_at;
    to->flags = fresh->flags;
    to->guard = fresh->guard;
    SIGNAL_FENCE(); /* a handler may leave by longjmp: what counts is whole */
    walker->remembered_count++;
    if (UNLIKELY((fresh->flags & (WALK_UNSURE | WALK_INTERRUPTED)) == WALK_UNSURE)) {
        walker->unsure = walker->remembered_count;
    }
}

static inline struct context_id child_of(struct walk_world *world, struct walker *walker,
                                         struct context_id parent, const struct walk_frame *fresh,
                                         enum context_kind kind) {
    uint64_t frame = (fresh->frame.pc & (MEMTRACE_FRAME_EXACT | MEMTRACE_FRAME_ADDRESS_MASK)) |
                     (uint64_t)fresh->module << MEMTRACE_FRAME_MODULE_SHIFT;
    if (UNLIKELY((fresh->flags & (WALK_SKIPPED | WALK_ENTRY)) != 0)) {
        if (fresh->flags & WALK_SKIPPED) {
            return parent;
        }
        frame |= fresh->flags & WALK_ENTRY ? MEMTRACE_FRAME_EXACT : 0;
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
static inline struct context_id shadow_fill(struct walk_world *world, struct walker *walker,
                                            uint32_t index, const struct walk_frame *fresh,
                                            struct context_id parent, enum context_kind kind) {
    struct shadow_stack *shadow = &walker->shadow;
    const struct shadow_entry *memo = &shadow->entry[index];
    struct context_id context =
        memo->pc == fresh->frame.pc && memo->parent == parent.value && memo->context != 0
            ? (struct context_id){memo->context}
            : child_of(world, walker, parent, fresh, kind);
    shadow->entry[index] = (struct shadow_entry){fresh->frame.pc, parent.value, context.value};
    SIGNAL_FENCE();
    shadow->slot[index] |= SHADOW_KNOWN;
    remember_above(walker, index, &fresh->frame, context.value);
    return context;
}

/* How frame `it`, which is not on the thread's own stack, was reached: from the frame `newer`.
 * Whether its words may be compared later where all newer ones are what they were. */
static COLD int may_follow(struct walker *walker, struct walk_frame *it,
                           const struct frame *newer) {
    int apart = !stack_same_page(it->frame.slot, newer->slot);
    /* Another thread may run there and place the like of a guard that this one remembers. */
    it->flags |= WALK_UNPATCHED;
    it->guard = 0;
    walker->apart |= apart;
    return !apart || stack_is_called(newer->pc, it->frame.slot);
}

/* From the oldest fresh frame to the newest. */
INLINE struct context_id come_back_over(struct walk_world *world, struct walker *walker,
                                        struct context_id context, uint32_t count, int has_shadow,
                                        uint32_t shadow_index) {
    struct walk_frame *fresh = walker->fresh + count;
    while (fresh-- != walker->fresh) {
        struct context_id parent = context;
        enum context_kind kind = fresh == walker->fresh ? CONTEXT_CHARGED : CONTEXT_INNER;
        uint32_t slot =
            has_shadow ? shadow_find(&walker->shadow, &shadow_index, fresh->frame.slot) : 0;
        if ((fresh->flags & WALK_HAS_WORD) != 0) {
            *walk_frame_word(fresh) = parent.value;
        }
        if (slot != 0) {
            context = shadow_fill(world, walker, slot, fresh, parent, kind);
            continue;
        }
        context = child_of(world, walker, parent, fresh, kind);
        if (LIKELY(stack_holds(&walker->stack, fresh->frame.slot)) ||
            may_follow(walker, fresh, &fresh[fresh != walker->fresh ? -1 : 0].frame)) {
            remember(walker, fresh, parent.value, context.value);
        } else {
            remember_above(walker, BASE_UNKNOWN, &fresh->frame, context.value);
        }
    }
    return context;
}

static inline struct context_id come_back(struct walk_world *world, struct walker *walker,
                                          struct context_id context, uint32_t count,
                                          uint32_t shadow_index) {
    return LIKELY(walker->shadow.capacity == 0)
               ? come_back_over(world, walker, context, count, 0, 0)
               : come_back_over(world, walker, context, count, 1, shadow_index);
}

/* --- the walk --------------------------------------------------------------------------------- */

/* How far out a walk has come. */
struct progress {
    struct frame frame;
    uint32_t count; /* fresh frames, this one left out */
    uint32_t shadow_index;
    int32_t input_at;
    uint32_t guard;       /* as in struct walk_frame */
    enum step how;        /* this frame was reached */
    uint16_t interrupted; /* by a signal: WALK_INTERRUPTED */
    /* The next frame word may be left over from an earlier call: a signal or lazy binding can come
     * before it is made. Only there: a call to what may allocate comes after its making. */
    int doubtful;
    uint32_t base;  /* index + 1 of the remembered frame that this one is; 0: none */
    uint32_t known; /* the context of this frame, from the word of the one before; 0: not known */
    uint32_t end;   /* the base of a path that ends here: as in struct walker, or BASE_ZERO */
};

/* Looks at the frame word of `fresh`, whose caller is `caller`. */
static inline void meet_frame_word(struct walk_world *world, struct progress *at, struct rule rule,
                                   struct walk_frame *fresh, const struct frame *caller) {
    uintptr_t cfa = caller->slot + sizeof(uintptr_t);
    int32_t word_at = (int32_t)(cfa - fresh->frame.slot) - 4 * (int32_t)rule.frame_word;
    uint32_t value;
    if (UNLIKELY(at->doubtful || word_at < (int32_t)sizeof(uintptr_t))) {
        at->doubtful = 0;
        return;
    }
    fresh->frame_word_at = word_at;
    fresh->flags |= WALK_HAS_WORD;
    value = *walk_frame_word(fresh);
    if (value != FRAME_WORD_FRESH) {
        at->known = context_exists(world->tree, value) ? value : 0;
        if (at->known == 0) {
            fresh->flags &= (uint16_t)~WALK_HAS_WORD; /* no id: not a word of ours */
        }
    }
}

/* The flags of the present frame. Notes where it makes the next frame word doubtful. */
static COLD uint16_t unusual_flags(const struct walk_world *world, struct rule rule,
                                   enum step how) {
    int skipped = rule.hidden || (world->own_frames_only && !rule.own);
    return (uint16_t)((how == STEP_UNSURE ? WALK_UNSURE : 0) | (skipped ? WALK_SKIPPED : 0) |
                      (rule.entry ? WALK_ENTRY : 0) | (rule.plain ? 0 : WALK_UNPATCHED));
}

/* Sees through a guard that a step read as pc, and notes it: a frame whose guard was forgotten has
 * it still. (A signal may interrupt a guard, too: that one stands in no slot.) */
static inline void see_through(struct progress *at, struct frame *next) {
    uintptr_t pc = next->pc & ~RULE_EXACT;
    at->guard = 0;
    if (UNLIKELY(guard_is(pc))) {
        at->guard = pc == next->pc ? guard_number(pc) : 0;
        next->pc = guard_see_through(pc) | (next->pc & RULE_EXACT);
    }
}

/* The path ends with the present frame: what that says of the next path with the same frames. */
static COLD void note_end(struct walk_world *world, struct walker *walker, struct progress *at,
                          struct rule rule, uintptr_t next_slot) {
    int is_own = stack_holds(&walker->stack, at->frame.slot);
    at->end = BASE_OUTERMOST;
    /* A fiber's stack just ends, in code that nobody called: only our own has a known end. */
    if (at->how == STEP_LOST && is_own && !world->rules->by_frame_pointer) { /* whose chain ends */
        space_lost(world->space, MEMTRACE_LOST_FRAMES, 1);
    }
    if (!is_own && at->how != STEP_END && rule.kind != RULE_UNKNOWN) {
        at->end = BASE_UNKNOWN;
        if (at->how == STEP_SURE && stack_same_page(next_slot, at->frame.slot)) {
            at->end = BASE_ZERO;
            at->frame.slot = next_slot;
        }
    }
}

/* Notes the present frame as fresh and goes to the next. 0, or -1: the walk ends here. */
static inline int advance(struct walk_world *world, struct walker *walker, struct progress *at) {
    struct rule rule = rule_find(world->rules, at->frame.pc);
    struct walk_frame *fresh = &walker->fresh[at->count++];
    int own_fp = rule.kind == RULE_SP && rule.fp_offset != 0;
    struct frame next;
    fresh->frame.pc = at->frame.pc;
    fresh->frame.slot = at->frame.slot;
    fresh->frame.fp = at->frame.fp;
    fresh->guard = at->guard;
    fresh->module = rule.module;
    fresh->flags = (uint16_t)((rule.may_catch ? WALK_UNPATCHED : 0) | (own_fp ? WALK_OWN_FP : 0));
    note_input(fresh, at->input_at);
    if (UNLIKELY(!rule.plain || at->how != STEP_SURE || world->own_frames_only)) {
        fresh->flags |= (uint16_t)(unusual_flags(world, rule, at->how) | at->interrupted);
        at->interrupted = rule.kind == RULE_SIGNAL ? WALK_INTERRUPTED : 0;
        at->doubtful |= rule.kind == RULE_SIGNAL || rule.loader;
    }
    at->how = step(world->rules, &walker->stack, rule, &at->frame, &next);
    if (UNLIKELY(at->how >= STEP_END || next.pc == 0)) {
        note_end(world, walker, at, rule, next.slot);
        return -1;
    }
    see_through(at, &next);
    if (rule.frame_word != 0) {
        meet_frame_word(world, at, rule, fresh, &next);
    }
    at->input_at = 0;
    if (rule.fp_offset != 0 && at->how == STEP_SURE) {
        at->input_at = (int32_t)(rule.fp_offset + 1) * (int32_t)sizeof(uintptr_t);
    }
    at->frame = next;
    return 0;
}

/* The present frame has a shadow slot that tells its context: 0 if not. */
static inline uint32_t look_at_shadow(struct walker *walker, struct progress *at) {
    struct shadow_stack *shadow = &walker->shadow;
    uint32_t i = shadow_skip(shadow, at->shadow_index, at->frame.slot);
    at->shadow_index = i;
    if (shadow->slot[i] != (at->frame.slot | SHADOW_KNOWN) || shadow->entry[i].pc != at->frame.pc) {
        return 0;
    }
    remember_above(walker, i, &at->frame, shadow->entry[i].context);
    return shadow->entry[i].context;
}

/* The context of the present frame, if that is known; 0: not. What remains remembered then is older
 * than the frame, or is the frame. */
static inline uint32_t look_up(struct walk_world *world, struct walker *walker,
                               struct progress *at) {
    uint32_t context = at->shadow_index != 0 ? look_at_shadow(walker, at) : 0;
    if (context != 0) {
        return context;
    }
    at->base = at->how == STEP_SURE ? recognise(world, walker, &at->frame) : 0;
    if (at->base != 0) {
        struct walk_frame *base = &walker->remembered[at->base - 1];
        context = base->context;
        if (at->count != 0) {
            note_input(base, at->input_at);
            if (UNLIKELY(!stack_holds(&walker->stack, base->frame.slot)) &&
                !may_follow(walker, base, &walker->fresh[at->count - 1].frame)) {
                remember_above(walker, BASE_UNKNOWN, &at->frame, context);
                at->base = 0;
            }
        }
        return context;
    }
    if (at->known != 0) {
        remember_above(walker, BASE_UNKNOWN, &at->frame, at->known);
    }
    return at->known;
}

/* What was remembered of the allocation's caller is enough to know it again, if it was. */
static inline void note_last(struct walker *walker, const struct frame *frame) {
    const struct walk_frame *end = walker->remembered + walker->remembered_count;
    walker->last.pc = 0;
    if (end != walker->remembered && same_frame(&end[-1], frame)) {
        walk_note_last(walker, *frame,
                       (end[-1].flags & WALK_HAS_WORD) != 0 ? walk_frame_word(&end[-1]) : NULL,
                       end[-1].parent, end[-1].context);
    }
}

/* Whether the trail's end is what it was: if it is a remembered frame, with all that is older. */
static inline int trail_end_holds(struct walk_world *world, struct walker *walker,
                                  const struct walk_trail *trail) {
    const struct walk_frame *base = &walker->remembered[trail->base_index];
    if (trail->base_word != NULL) {
        return *trail->base_word == trail->base_context;
    }
    return trail->base_index < walker->remembered_count && base->context == trail->base_context &&
           same_frame(base, &trail->base) && recognise_older(world, walker, trail->base_index) &&
           !wants_guard(world, walker, trail->base_index);
}

/* The context, where the whole way is known; 0: it is not. */
static inline uint32_t walk_by_trail(struct walk_world *world, struct walker *walker,
                                     const struct frame *from) {
    struct trail_set *set = trail_set(walker, from);
    if (trail_is_seldom(set)) {
        return 0;
    }
    for (uint32_t way = 0; way < TRAIL_WAYS; way++) {
        const struct walk_trail *trail = &set->way[way];
        if (trail_holds(trail, world->rules, from) && trail_end_holds(world, walker, trail)) {
            if (trail->base_word != NULL) {
                walk_note_word(walker, from, trail->word, trail->parent, trail->context);
            }
            set->missed = 0;
            return trail->context;
        }
    }
    return 0;
}

/* Apart, so that what comes before it stays short. */
static __attribute__((noinline)) struct context_id
walk(struct walk_world *world, struct walker *walker, const struct frame *from) {
    struct progress at = {.frame = *from,
                          .shadow_index = walker->shadow.capacity != 0 ? walker->shadow.top : 0};
    struct context_id context = {0};
    stack_begin(&walker->stack, from->slot);
    for (;;) {
        context.value = look_up(world, walker, &at);
        if (context.value != 0) {
            break;
        }
        if (UNLIKELY(walker->remembered_count + at.count + 2 >= walker->capacity) &&
            grow(walker) != 0) {
            space_lost(world->space, MEMTRACE_LOST_FRAMES, 1);
            remember_above(walker, BASE_OUTERMOST, &at.frame, 0);
            break;
        }
        if (advance(world, walker, &at) != 0) {
            /* Nothing older is known: the path starts here. */
            remember_above(walker, at.end, &at.frame, 0);
            break;
        }
    }
    context = come_back(world, walker, context, at.count, at.shadow_index);
    if (at.base != 0 && walker->remembered_count == at.base + at.count) {
        trail_keep(world, walker, from, at.base - 1, context.value);
    }
    if (UNLIKELY(wants_guard(world, walker, walker->remembered_count - 1))) {
        remembered_place_guard(walker);
    }
    if (UNLIKELY(at.count > LONG_WALK)) {
        sys_discard(walker->fresh + LONG_WALK, bytes_of(at.count - LONG_WALK));
    }
    note_last(walker, from);
    return context;
}

/* All frames as libunwind sees them, each time anew. */
static COLD struct context_id walk_by_libunwind(struct walk_world *world, struct walker *walker,
                                                uintptr_t pc, uintptr_t slot) {
    struct frame outermost = {.pc = pc, .slot = slot};
    struct libunwind_walk walk;
    uint32_t count = 0;
    int exact = 0;
    if (libunwind_start(world->libunwind, &walk, slot) != 0) {
        return (struct context_id){0};
    }
    do {
        struct walk_frame *fresh = &walker->fresh[count];
        struct rule rule;
        *fresh = (struct walk_frame){.frame = walk.frame};
        fresh->frame.pc = guard_see_through(walk.frame.pc) | (exact ? RULE_EXACT : 0);
        rule = rule_find(world->rules, fresh->frame.pc);
        fresh->module = rule.module;
        fresh->flags = unusual_flags(world, rule, STEP_UNSURE);
        exact = rule.kind == RULE_SIGNAL;
        count++;
    } while (libunwind_step(world->libunwind, &walk) &&
             (count + 2 < walker->capacity || grow(walker) == 0));
    remember_above(walker, BASE_OUTERMOST, &outermost, 0);
    return come_back_over(world, walker, (struct context_id){0}, count, 0, 0);
}

/* Nothing was called or left since the last allocation. */
static inline int is_repeated(struct walk_world *world, struct walker *walker,
                              const struct frame *frame) {
    uint32_t count = walker->remembered_count;
    return count != 0 && same_frame(&walker->remembered[count - 1], frame) &&
           recognise_older(world, walker, count - 1) && !wants_guard(world, walker, count - 1);
}

/* Something was called or left since the last allocation. */
static __attribute__((noinline)) struct context_id walk_anew(struct walk_world *world,
                                                             struct walker *walker, uintptr_t pc,
                                                             uintptr_t slot, uintptr_t fp) {
    struct frame from = {pc, slot, fp};
    struct context_id context = {walk_by_trail(world, walker, &from)};
    if (context.value == 0 && walker->shadow.capacity == 0) {
        if (LOAD_RELAXED(&world->rules->has_frame_words)) {
            context = word_walk(world, walker, pc, slot, fp);
        }
        if (context.value == 0 && !world->own_frames_only) {
            context = plain_walk(world, walker, pc, slot, fp);
        }
    }
    return LIKELY(context.value != 0) ? context : walk(world, walker, &from);
}

struct context_id walk_context_slow(struct walk_world *world, struct walker *walker, uintptr_t pc,
                                    uintptr_t slot, uintptr_t fp) {
    struct frame from = {guard_see_through(pc), slot, fp}; /* malloc may be called by a jump */
    if (UNLIKELY(world->libunwind != NULL)) {
        return walk_by_libunwind(world, walker, from.pc, slot);
    }
    if (UNLIKELY(walker->generation != LOAD_RELAXED(&world->rules->generation))) {
        remembered_forget(walker, world->rules, slot);
    }
    if (!LOAD_RELAXED(&world->rules->has_frame_words) && is_repeated(world, walker, &from)) {
        return (struct context_id){walker->remembered[walker->remembered_count - 1].context};
    }
    return walk_anew(world, walker, from.pc, slot, fp);
}
