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
/* So many frames without words are stepped over again rather than remembered. */
enum { MOST_WITHOUT_WORD = 4 };

static size_t bytes_of(uint32_t frames) {
    return frames * sizeof(struct walk_frame);
}

int walk_init(struct walker *walker, uintptr_t low, uintptr_t high) {
    walker->capacity = FIRST_CAPACITY;
    walker->stack = (struct stack_bounds){.low = low, .high = high};
    walker->remembered.count = 0;
    walker->remembered.frame = sys_map(bytes_of(FIRST_CAPACITY));
    walker->path = sys_map(bytes_of(FIRST_CAPACITY));
    if (walker->remembered.frame == NULL || walker->path == NULL) {
        walk_free(walker);
        return -1;
    }
    return 0;
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

/* What a path holds besides usual frames: those of the thread's own stack with plain rules. */
enum {
    ODD_WORD = 1,    /* frame words */
    ODD_UNSURE = 2,  /* a step that depended on more than what was read by rules */
    ODD_SKIPPED = 4, /* frames that make no context */
    ODD_STACK = 8    /* frames of another stack, or the thread has a shadow stack */
};

/* How far out a walk has come. The remembered frames stay as they are until it comes back. */
struct progress {
    struct frame frame;
    uint32_t count;   /* frames on the path; this one is not */
    uint32_t known;   /* remembered frames that may be this one or older ones */
    uint32_t context; /* of this frame, as the word of the function that it called tells; 0: not */
    uint32_t shadow;  /* the newest slot of the shadow stack that is not below this frame; or 0 */
    uint32_t flags;   /* of this frame: those that the step to it decides */
    int8_t fp_at;     /* as walk_fp_at() */
    uint8_t odd;
    /* The next frame word may be left over from an earlier call: a signal or lazy binding can come
     * before it is made. Only there: a call to what may allocate comes after its making. */
    uint8_t doubtful;
    /* A frame word will end the path soon: then nothing needs to be remembered or known again. */
    uint8_t seeks_word;
    uint8_t without_word; /* frames */
};

/* The path's newest function has just been stepped over, to `caller`. Has it a word, and does that
 * tell the caller's context? */
INLINE void look_at_word(struct walk_world *world, struct progress *at, struct rule rule,
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
    at->odd |= ODD_WORD;
    newest->how |= rule.frame_word;
    at->context = value != FRAME_WORD_FRESH ? value : 0;
}

/* Where a step has led through a guard, or by no plain rule. (A signal may interrupt a guard, too:
 * that one stands in no slot.) */
static inline void see_through(struct progress *at, enum step how, struct frame *next) {
    uintptr_t pc = next->pc & ~RULE_EXACT;
    at->flags = 0;
    if (UNLIKELY(how == STEP_UNSURE)) {
        at->flags = WALK_UNSURE;
        at->odd |= ODD_UNSURE;
        at->seeks_word = 0;
    }
    if (guard_is(pc)) {
        at->flags |= pc == next->pc ? WALK_GUARDED : 0;
        next->pc = guard_see_through(pc) | (next->pc & RULE_EXACT);
    }
}

/* A fiber's stack just ends, in code that nobody called: only our own has a known end. */
static COLD void note_end(struct walk_world *world, const struct walker *walker, enum step how,
                          uintptr_t slot) {
    if (how == STEP_LOST && stack_holds(&walker->stack, slot) &&
        !world->rules->by_frame_pointer) { /* whose chain just ends */
        space_lost(world->space, MEMTRACE_LOST_FRAMES, 1);
    }
}

INLINE uint64_t code_of(uintptr_t pc, struct rule rule) {
    return pc | (uint64_t)rule.module << MEMTRACE_FRAME_MODULE_SHIFT;
}

INLINE uint32_t how_of(union rule_word found, int8_t fp_at) {
    uint32_t how = (uint32_t)found.word & (WALK_BY_FP | WALK_UNPATCHED | WALK_OWN_FP);
    return found.rule.own_fp ? how : how | walk_fp_bits(fp_at);
}

/* Puts the present frame, whatever its rule, on the path. */
static inline struct walk_frame *put_on_path(const struct walk_world *world, struct walker *walker,
                                             struct progress *at, struct rule rule) {
    struct walk_frame *newest = &walker->path[at->count++];
    newest->code = code_of(at->frame.pc, rule) | (rule.entry ? MEMTRACE_FRAME_EXACT : 0);
    newest->slot = at->frame.slot;
    newest->fp = at->frame.fp;
    newest->how = at->flags | how_of((union rule_word){.rule = rule}, at->fp_at);
    if (UNLIKELY(!rule.plain || world->own_frames_only)) {
        newest->how |= rule.plain ? 0 : WALK_UNPATCHED;
        if (rule.hidden || (world->own_frames_only && !rule.own)) {
            newest->how |= WALK_SKIPPED;
            at->odd |= ODD_SKIPPED;
        }
        at->doubtful |= rule.kind == RULE_SIGNAL || rule.loader;
    }
    return newest;
}

/* Puts the present frame on the path and steps to the next. 0, or -1: the walk ends here. */
static inline int advance(struct walk_world *world, struct walker *walker, struct progress *at) {
    struct rule rule = rule_cached(world->rules, &walker->rules, at->frame.pc).rule;
    struct walk_frame *newest = put_on_path(world, walker, at, rule);
    struct frame next;
    enum step how = step(world->rules, &walker->stack, rule, &at->frame, &next);
    if (UNLIKELY(how >= STEP_END || next.pc == 0)) {
        note_end(world, walker, how, at->frame.slot);
        return -1;
    }
    at->odd |= stack_holds(&walker->stack, next.slot) ? 0 : ODD_STACK;
    see_through(at, how, &next);
    if (rule.frame_word != 0) {
        look_at_word(world, at, rule, newest, &next);
    } else if (at->seeks_word && at->without_word++ == MOST_WITHOUT_WORD) {
        at->seeks_word = 0; /* remembering costs less than stepping again */
    }
    at->fp_at = how == STEP_SURE ? (int8_t)rule.fp_offset : 0;
    at->frame = next;
    return 0;
}

/* advance(), again and again, as long as nothing is unusual: over plain rules, on the thread's own
 * stack, past what is remembered, to a slot without a guard. What it stops at is advance()'s, or is
 * like a remembered one (1), or its context is known. */
static inline int stride(struct walk_world *world, struct walker *walker, struct progress *at) {
    const struct walk_frame *remembered = walker->remembered.frame;
    struct walk_frame *to = walker->path + at->count;
    const struct walk_frame *end = walker->path + walker->capacity - at->known - 2;
    uint32_t known = at->known;
    uintptr_t known_slot = known != 0 && !at->seeks_word ? remembered[known - 1].slot : UINTPTR_MAX;
    struct frame here = at->frame;
    struct frame next;
    int8_t fp_at = at->fp_at;
    int is_alike = 0;
    for (; to < end; to++) {
        union rule_word found;
        while (UNLIKELY(here.slot >= known_slot)) {
            if (same_frame(&remembered[known - 1], &here)) {
                is_alike = 1;
                goto out;
            }
            known--;
            known_slot = known != 0 ? remembered[known - 1].slot : UINTPTR_MAX;
        }
        found = rule_cached(world->rules, &walker->rules, here.pc);
        if (UNLIKELY(!found.rule.plain || !step_plainly(&walker->stack, found.rule, &here, &next) ||
                     guard_is(next.pc) || next.pc - 1 >= MEMTRACE_FRAME_ADDRESS_MASK)) {
            break;
        }
        to->code = code_of(here.pc, found.rule);
        to->slot = here.slot;
        to->fp = here.fp;
        to->how = how_of(found, fp_at);
        fp_at = (int8_t)found.rule.fp_offset;
        here = next;
        if (found.rule.frame_word != 0) {
            look_at_word(world, at, found.rule, to, &next);
            if (at->context != 0) {
                to++;
                break;
            }
        } else if (at->seeks_word && at->without_word++ == MOST_WITHOUT_WORD) {
            at->seeks_word = 0; /* remembering costs less than stepping again */
            to++;
            break;
        }
    }
out:
    at->frame = here;
    at->fp_at = fp_at;
    at->known = known;
    at->count = (uint32_t)(to - walker->path);
    return is_alike;
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

/* Whether the present frame is like the newest of those known. Leaves older ones known, else. */
static inline int is_alike(const struct walker *walker, struct progress *at) {
    const struct walk_frame *frame = walker->remembered.frame;
    while (at->known != 0 && frame[at->known - 1].slot <= at->frame.slot) {
        if (same_frame(&frame[at->known - 1], &at->frame)) {
            return (at->flags & WALK_UNSURE) == 0;
        }
        at->known--;
    }
    return 0;
}

/* Steps outwards to a frame whose context is known. `voucher`: who tells that, if it is remembered
 * with everything older unchanged. */
INLINE enum walk_end collect(struct walk_world *world, struct walker *walker, struct progress *at,
                             int is_usual, uint32_t *voucher) {
    for (;;) {
        if (!is_usual && at->shadow != 0 && is_in_shadow(walker, at)) {
            return AT_SHADOW;
        }
        if (is_usual && at->flags == 0 ? stride(world, walker, at)
                                       : !at->seeks_word && is_alike(walker, at)) {
            struct verdict verdict = look_at_older(walker, at->known - 1);
            *voucher = verdict.at;
            if (verdict.holds) {
                return AT_REMEMBERED;
            }
            at->known = verdict.at;
            continue;
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
}

/* Field by field: what was just stored so is not read back in one piece without a stall. */
INLINE void copy_frame(struct walk_frame *to, const struct walk_frame *from, uint32_t context) {
    to->code = from->code;
    to->slot = from->slot;
    to->fp = from->fp;
    to->context = context;
    to->how = from->how;
}

static inline void remember(struct walker *walker, const struct walk_frame *it, uint32_t context) {
    struct remembered *remembered = &walker->remembered;
    copy_frame(&remembered->frame[remembered->count], it, context);
    SIGNAL_FENCE(); /* a handler may leave by longjmp: what counts is whole */
    remembered->count++;
    if ((it->how & WALK_UNSURE) != 0) {
        walker->guarding.unsure = remembered->count;
    }
}

static inline struct context_id child_of(struct walk_world *world, struct walker *walker,
                                         struct context_id parent, const struct walk_frame *it,
                                         enum context_kind kind) {
    return (it->how & WALK_SKIPPED) != 0
               ? parent
               : context_cached_child(world->tree, &walker->cache, parent, it->code, kind);
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

/* From the oldest frame of the path to the newest, from the context of what called it. Frames on
 * the thread's own stack are remembered, if at all, since their words can always be read, as long
 * as all older ones are. */
static struct context_id come_back(struct walk_world *world, struct walker *walker,
                                   const struct progress *at, struct context_id context,
                                   int is_remembering) {
    uint32_t shadow_index = at->shadow;
    uintptr_t sp = frame_sp(at->frame.slot); /* the caller's */
    for (uint32_t i = at->count; i-- > 0;) {
        const struct walk_frame *it = &walker->path[i];
        enum context_kind kind = i == 0 ? CONTEXT_CHARGED : CONTEXT_INNER;
        uint32_t index = walker->shadow.capacity != 0
                             ? shadow_find(&walker->shadow, &shadow_index, it->slot)
                             : 0;
        if (walk_word(it) != 0) {
            *word_below(sp, walk_word(it)) = context.value;
        }
        sp = frame_sp(it->slot);
        is_remembering = (is_remembering || index != 0) && stack_holds(&walker->stack, it->slot);
        context = index != 0 ? fill_shadow(world, walker, index, it, context, kind)
                             : child_of(world, walker, context, it, kind);
        if (is_remembering && index == 0) {
            remember(walker, it, context.value);
        }
    }
    return context;
}

/* The newest `count` frames of the path, at least two, are new below `parent`: makes them, and
 * remembers them from `to` on. How many were made; 0: only context_child() can, one by one. */
static uint32_t make_path(struct context_tree *tree, const struct walk_frame *path, uint32_t count,
                          struct walk_frame *to, struct context_id parent) {
    struct context_run inner = context_take(tree, CONTEXT_INNER, parent.value, count - 1);
    struct memtrace_node *node = context_node(tree, (struct context_id){inner.first});
    struct context_run last = {0, 0};
    uint32_t id = inner.first;
    const struct walk_frame *it = path + count;
    if (inner.count == 0) {
        return 0;
    }
    if (inner.count == count - 1) {
        last = context_take(tree, CONTEXT_CHARGED, inner.first + inner.count - 1, 1);
    }
    for (uint32_t above = parent.value; id < inner.first + inner.count; above = id++, node++) {
        it--;
        node->parent = above;
        STORE_RELAXED(&node->frame, it->code);
        if (id != inner.first) {
            context_link_first(tree, above, id);
        }
        copy_frame(to++, it, id);
    }
    if (last.count != 0) {
        context_write(tree, last.first, id - 1, path->code);
        context_link_first(tree, id - 1, last.first);
        copy_frame(to, path, last.first);
    }
    if (LIKELY(
            context_insert(tree, parent, path[count - 1].code, CONTEXT_INNER, inner.first).value ==
            inner.first)) {
        return inner.count + last.count;
    }
    while (--id != inner.first) { /* another thread was first; inserting has dropped one */
        context_drop(tree, id);
    }
    if (last.count != 0) {
        context_drop(tree, last.first);
    }
    return 0;
}

/* The same where there are but usual frames. */
static inline struct context_id come_back_usual(struct walk_world *world, struct walker *walker,
                                                const struct progress *at,
                                                struct context_id context) {
    struct walk_frame *to = walker->remembered.frame + walker->remembered.count;
    for (uint32_t i = at->count; i-- > 0; to++) {
        const struct walk_frame *it = &walker->path[i];
        uint32_t child = context_cache_look(&walker->cache, context, it->code);
        if (UNLIKELY(child == 0)) {
            child = context_find(world->tree, context, it->code);
            if (child == 0 && i != 0) {
                uint32_t made = make_path(world->tree, walker->path, i + 1, to, context);
                if (made != 0) {
                    to += made - 1;
                    i -= made - 1;
                    context.value = to->context;
                    continue;
                }
            }
            if (child == 0 || child == CONTEXT_UNKNOWN) {
                child = context_child(world->tree, context, it->code,
                                      i == 0 ? CONTEXT_CHARGED : CONTEXT_INNER)
                            .value;
            }
            context_cache_keep(&walker->cache, context, it->code, child);
        }
        context.value = child;
        copy_frame(to, it, child);
    }
    SIGNAL_FENCE(); /* a handler may leave by longjmp: what counts is whole */
    walker->remembered.count += at->count;
    return context;
}

/* What is remembered of the allocation's caller is enough to know it again, where one word vouches
 * for all that is older. */
static inline void note_last(struct walker *walker, const struct frame *frame) {
    const struct walk_frame *end = walker->remembered.frame + walker->remembered.count;
    walker->last.pc = 0;
    if (end != walker->remembered.frame && same_frame(&end[-1], frame)) {
        walker->last = (struct walk_last){
            .pc = frame->pc,
            .slot = frame->slot,
            .fp = frame->fp,
            .word = walk_word(&end[-1]) != 0
                        ? word_below(caller_sp(walker, &end[-1]), walk_word(&end[-1]))
                        : NULL,
            .parent = caller_context(walker, &end[-1]),
            .context = end[-1].context};
    }
}

/* At the end of a path over frame words: that of the allocating function vouches next time. */
static inline void note_word(struct walker *walker, const struct frame *frame, uint32_t *word,
                             uint32_t parent, uint32_t context) {
    walker->last.pc = 0;
    if (word != NULL) {
        *word = parent;
        walker->last = (struct walk_last){frame->pc, frame->slot, frame->fp, word, parent, context};
    }
}

/* --- trails ----------------------------------------------------------------------------------- */

/* Adds the frames of `from` up to `to` outwards, which are remembered. */
static int add_frames(struct walk_trail *trail, const struct walk_frame *from,
                      const struct walk_frame *to, int uses_fp) {
    for (const struct walk_frame *it = from; it-- != to;) {
        if (!trail_add(trail, it->slot) ||
            (uses_fp && walk_fp_at(it) != 0 &&
             !trail_add(trail, frame_place(it->slot, walk_fp_at(it))))) {
            return 0;
        }
    }
    return 1;
}

/* Keeps the path from here, if it is one that its words alone determine. It was remembered, above
 * frame `base`, for whose older ones frame `voucher` vouched. If that has a guard, the trail leads
 * there. */
static __attribute__((noinline)) void keep_trail(struct walker *walker, const struct frame *from,
                                                 uint32_t base, uint32_t voucher) {
    const struct walk_frame *frame = walker->remembered.frame;
    const struct walk_frame *newest = &frame[walker->remembered.count - 1];
    int is_guarded =
        guard_holds(&frame[voucher]) && newest - &frame[voucher] <= (ptrdiff_t)TRAIL_MOST;
    uint32_t end = is_guarded ? voucher : base;
    uint32_t how = 0;
    struct walk_trail *trail;
    int uses_fp;
    for (const struct walk_frame *it = newest; it != &frame[end]; it--) {
        how |= it->how;
    }
    if ((how & (WALK_UNSURE | WALK_WORD_MASK)) != 0 || (frame[end].how & WALK_SKIPPED) != 0) {
        return; /* (what is skipped has the context of its caller) */
    }
    uses_fp = (how & WALK_BY_FP) != 0 || (!is_guarded && (frame[end].how & WALK_OWN_FP) == 0);
    trail = trail_begin(&walker->trails[trail_set_of(from)], from);
    if (!add_frames(trail, newest, &frame[end], uses_fp)) {
        return;
    }
    trail->needs_fp = uses_fp && (newest->how & WALK_OWN_FP) == 0;
    trail->end = is_guarded ? TRAIL_GUARD : TRAIL_REMEMBERED;
    trail->gap = (uint8_t)(base - end);
    trail->end_index = end;
    trail->end_at = frame[end].slot;
    trail->end_fp = frame[end].fp;
    trail->end_context = frame[end].context;
    trail->context = newest->context;
    SIGNAL_FENCE();
    trail->from.pc = from->pc;
}

/* The same where a frame word ended the path, over which alone the walk came back. */
static void keep_word_trail(struct walker *walker, const struct frame *from,
                            const struct progress *at, uint32_t context) {
    const struct walk_frame *path = walker->path;
    uintptr_t caller = at->count > 1 ? path[1].slot : at->frame.slot;
    uint32_t *word =
        walk_word(&path[0]) != 0 ? word_below(frame_sp(caller), walk_word(&path[0])) : NULL;
    uint32_t parent = word != NULL ? *word : 0;
    struct walk_trail *trail;
    uint32_t how = path[0].how;
    note_word(walker, from, word, parent, context);
    if (!trail_is_worth(&walker->trails[trail_set_of(from)], context)) {
        return;
    }
    trail = trail_begin(&walker->trails[trail_set_of(from)], from);
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
    trail->end_at =
        (uintptr_t)word_below(frame_sp(at->frame.slot), walk_word(&path[at->count - 1]));
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
        return (it->how & WALK_GUARDED) != 0;
    }
    if ((it->how & WALK_OWN_FP) == 0 && it->fp != trail->end_fp) {
        return 0;
    }
    *verdict = look_at_older(walker, trail->end_index);
    return (int)verdict->holds;
}

/* What is to be done where a trail holds. 0: a guard fails, or there is to be another. */
static inline int take(struct walk_world *world, struct walker *walker,
                       const struct walk_trail *trail, uint32_t voucher) {
    if (trail->end == TRAIL_WORD) {
        note_word(walker, &trail->from, trail->word, trail->parent, trail->context);
        return 1;
    }
    if (LIKELY(trail->end == TRAIL_GUARD)) {
        walker->guarding.compared += trail->gap;
        return trust_guard(world, walker, voucher) && !wants_guard(world, walker, trail->gap);
    }
    return recognise(world, walker, trail->end_index, voucher) &&
           !wants_guard(world, walker, (int32_t)(trail->end_index - voucher));
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

/* What the walk came to is what the path stands on from now on. */
static inline struct context_id stand_on(struct walker *walker, const struct progress *at,
                                         enum walk_end end, int is_brief) {
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
        break;
    case AT_SHADOW:
        context.value = walker->shadow.entry[at->shadow].context;
        remember_above(walker, at->shadow, &at->frame, context.value);
        break;
    case AT_WORD:
        context.value = at->context;
        if (is_brief) {
            walker->remembered.count = at->known;
        } else {
            remember_above(walker, BASE_UNKNOWN, &at->frame, context.value);
        }
        break;
    default:
        remember_above(walker, BASE_OUTERMOST, &at->frame, 0);
    }
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
    return come_back(world, walker, &at, (struct context_id){0}, 0);
}

static __attribute__((noinline)) struct context_id
walk(struct walk_world *world, struct walker *walker, uintptr_t pc, uintptr_t slot, uintptr_t fp) {
    struct frame from = {guard_see_through(pc), slot, fp}; /* malloc may be called by a jump */
    struct progress at = {
        .frame = from,
        .known = walker->remembered.count,
        .odd = walker->shadow.capacity != 0 || !stack_holds(&walker->stack, slot) ? ODD_STACK : 0,
        .shadow = walker->shadow.capacity != 0 ? walker->shadow.top : 0};
    struct context_id context;
    uint32_t voucher = 0;
    enum walk_end end;
    if (UNLIKELY(world->libunwind != NULL)) {
        return walk_by_libunwind(world, walker, from.pc, slot);
    }
    at.seeks_word =
        LOAD_RELAXED(&world->rules->has_frame_words) && at.odd == 0 && !world->own_frames_only;
    end = LIKELY(at.odd == 0 && !world->own_frames_only) ? collect(world, walker, &at, 1, &voucher)
                                                         : collect(world, walker, &at, 0, &voucher);
    int is_brief = end == AT_WORD && at.seeks_word;
    if (end == AT_REMEMBERED && !recognise(world, walker, at.known - 1, voucher)) {
        return walk(world, walker, pc, slot, fp); /* nothing is remembered any more */
    }
    context = stand_on(walker, &at, end, is_brief);
    if (is_brief) {
        context = come_back(world, walker, &at, context, 0);
        keep_word_trail(walker, &from, &at, context.value);
        return context;
    }
    context = LIKELY(at.odd == 0) ? come_back_usual(world, walker, &at, context)
                                  : come_back(world, walker, &at, context, 1);
    if (end == AT_REMEMBERED && at.count != 0 && walker->remembered.count == at.known + at.count &&
        trail_is_worth(&walker->trails[trail_set_of(&from)], context.value)) {
        keep_trail(walker, &from, at.known - 1, voucher);
    }
    if (UNLIKELY(wants_guard(world, walker,
                             (int32_t)(walker->remembered.count - 1 - walker->guarding.voucher)))) {
        remembered_place_guard(walker);
    }
    if (UNLIKELY(at.count > LONG_WALK)) {
        sys_discard(walker->path + LONG_WALK, bytes_of(at.count - LONG_WALK));
    }
    if (LIKELY(at.odd == 0)) {
        walker->last.pc = 0; /* no word vouches for anything */
    } else {
        note_last(walker, &from);
    }
    return context;
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
    struct frame from = {pc, slot, fp};
    uint32_t context;
    if (UNLIKELY(walker->remembered.generation != LOAD_RELAXED(&world->rules->generation))) {
        remembered_forget(walker, world->rules, slot);
    }
    if (is_repeated(world, walker, &from)) {
        return (struct context_id){walker->remembered.frame[walker->remembered.count - 1].context};
    }
    context = follow_trail(world, walker, &from);
    return context != 0 ? (struct context_id){context} : walk(world, walker, pc, slot, fp);
}
