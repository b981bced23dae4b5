/* SPDX-License-Identifier: MIT */
/* path.c: stepping outwards, and back. See path.h. */
#include "runtime/stack/path.h"

#include "runtime/base/sys.h"

enum { MOST_FRAMES = 1 << 22 };
/* So many frames without words are stepped over again rather than remembered. */
enum { MOST_WITHOUT_WORD = 4 };

/* Signals are held back: a handler that leaves by longjmp must not leave us with the memory that
 * was moved away. */
COLD int path_grow(struct walker *walker) {
    size_t old = walker->capacity * sizeof(struct walk_frame);
    struct sys_signals mask = sys_block_signals();
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

/* The path's newest function has just been stepped over, to `caller`. Has it a word, and does that
 * tell the caller's context? */
INLINE void look_at_word(struct walk_world *world, struct path *at, struct rule rule,
                         struct walk_frame *newest, const struct frame *caller) {
    uint32_t *word = word_below(frame_sp(caller->slot, caller->sp), rule_word(rule));
    uint32_t value;
    if (UNLIKELY(at->doubtful || (uintptr_t)word < frame_sp(newest->slot, newest->sp))) {
        at->doubtful = 0;
        return;
    }
    value = *word;
    if (value != FRAME_WORD_NEW && !context_exists(world->tree, value)) {
        return; /* no id: not a word of ours */
    }
    at->odd |= ODD_WORD;
    newest->how |= rule_word(rule);
    at->context = value != FRAME_WORD_NEW ? value : 0;
}

/* Where a step has led through a guard, or by no plain rule. (A signal may interrupt a guard, too:
 * that one stands in no slot.) */
static inline void see_through(struct path *at, struct rule rule, enum step how,
                               struct frame *next) {
    uint64_t pc = next->pc & ~RULE_EXACT;
    at->flags = 0;
    if (UNLIKELY(how == STEP_UNSURE)) {
        at->flags = rule.kind == RULE_SIGNAL ? WALK_UNSURE | WALK_INTERRUPTED : WALK_UNSURE;
        at->odd |= ODD_UNSURE;
        at->seeks_word = 0;
    }
    if (guard_is(pc)) {
        /* (Where calls push nothing it may have been in a register yet.) */
        at->flags |= pc == next->pc && (MACHINE_CALL_PUSHES || how == STEP_SURE) ? WALK_GUARDED : 0;
        next->pc = guard_see_through(pc) | (next->pc & RULE_EXACT);
    }
}

/* The path ends with the present frame: does it whenever it comes there? On other stacks than the
 * thread's own that may depend on a word beyond. */
static COLD void note_end(struct walk_world *world, const struct walker *walker, struct path *at,
                          struct rule rule, enum step how, uintptr_t next,
                          struct machine_sp next_sp) {
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
            at->frame.sp = next_sp;
        }
    }
}

INLINE uint64_t code_of(uint64_t pc, union rule_word found) {
    return pc | (found.word & RULE_AREA_MASK);
}

/* Of the frame that a plain rule leads to. */
INLINE uint32_t next_fp_bits(union rule_word found) {
    return MACHINE_CALL_PUSHES ? (uint32_t)(found.word & UINT8_MAX) << WALK_FP_AT_SHIFT
                               : walk_fp_bits(step_fp_at(found.rule));
}

INLINE uint32_t how_of(union rule_word found, uint32_t fp_bits) {
    uint32_t how = (uint32_t)found.word & (WALK_BY_FP | WALK_UNPATCHED | WALK_OWN_FP);
    how |= MACHINE_MAY_SIGN ? (uint32_t)((found.word & RULE_LOADER) >> 32) : 0; /* WALK_SIGNED */
    return (found.word & RULE_OWN_FP) != 0 ? how : how | fp_bits;
}

struct walk_frame *path_add(const struct walk_world *world, struct walker *walker, struct path *at,
                            struct rule rule) {
    union rule_word found = {.rule = rule};
    struct walk_frame *newest = &walker->path[at->count++];
    newest->code = code_of(at->frame.pc, found) | (rule.entry ? MEMTRACE_FRAME_EXACT : 0);
    newest->slot = at->frame.slot;
    newest->fp = at->frame.fp;
    newest->sp = at->frame.sp;
    newest->how = at->flags | how_of(found, walk_fp_bits(at->fp_at));
    if (UNLIKELY(!rule.plain || world->own_frames_only)) {
        if (rule.hidden || (world->own_frames_only && !rule.own)) {
            newest->how |= WALK_SKIPPED;
            at->odd |= ODD_SKIPPED;
        }
        at->doubtful |= rule.kind == RULE_SIGNAL || rule_is_in_loader(rule);
    }
    return newest;
}

/* Puts the present frame on the path and steps to the next. 0, or -1: the walk ends here. */
static inline int advance(struct walk_world *world, struct walker *walker, struct path *at) {
    struct rule rule = rule_cached(world->rules, &walker->rules, at->frame.pc).rule;
    struct walk_frame *newest = path_add(world, walker, at, rule);
    struct frame next;
    enum step how = step(world->rules, &walker->stack, rule, &at->frame, &next);
    if (UNLIKELY(how >= STEP_END || next.pc == 0)) {
        note_end(world, walker, at, rule, how, next.slot, next.sp);
        return -1;
    }
    at->odd |= stack_holds(&walker->stack, next.slot) ? 0 : ODD_STACK;
    see_through(at, rule, how, &next);
    if (rule_word(rule) != 0) {
        look_at_word(world, at, rule, newest, &next);
    } else if (at->seeks_word && at->without_word++ == MOST_WITHOUT_WORD) {
        at->seeks_word = 0; /* remembering costs less than stepping again */
    }
    at->fp_at = how == STEP_SURE ? step_fp_at(rule) : 0;
    at->frame = next;
    return 0;
}

/* Whether the slot of `here` holds the guard of remembered frame `it`, which is there, then. */
static inline int is_guard_of(const struct walk_frame *it, const struct frame *here) {
    struct frame seen = {guard_see_through(here->pc), here->slot, here->fp, here->sp};
    return guard_is(here->pc) && same_frame(it, &seen);
}

/* No return address that a rule could be looked for: a guard, 0, garbage. */
static inline int is_no_code(uint64_t pc) {
    return guard_is(pc) || pc - 1 >= MEMTRACE_FRAME_ADDRESS_MASK;
}

/* stride() has stepped over the frame `it`, to `next`, and it has a word, or one is sought. Whether
 * there is reason to stop. */
INLINE int is_telling(struct walk_world *world, struct path *at, struct rule rule,
                      struct walk_frame *it, const struct frame *next) {
    if (rule_word(rule) != 0) {
        look_at_word(world, at, rule, it, next);
        return at->context != 0;
    }
    if (at->seeks_word && at->without_word++ == MOST_WITHOUT_WORD) {
        at->seeks_word = 0; /* remembering costs less than stepping again */
        return 1;
    }
    return 0;
}

/* advance(), again and again, as long as nothing is unusual: over plain rules, on the thread's own
 * stack, past what is remembered. What it stops at is advance()'s, or a remembered frame that is
 * there with all older ones, or its context is known. What is no code has no plain rule, so it is
 * not asked for at each step: the last one is taken back. */
INLINE struct verdict stride(struct walk_world *world, struct walker *walker, struct path *at) {
    struct verdict verdict = {0, 0};
    struct walk_frame *to = walker->path + at->count;
    const struct walk_frame *end = walker->path + walker->capacity - at->known - 2;
    uint64_t looks = at->seeks_word ? ~UINT64_C(0) : RULE_WORD_MASK;
    uint32_t known = at->known;
    uintptr_t known_slot =
        known != 0 && !at->seeks_word ? walker->remembered.frame[known - 1].slot : UINTPTR_MAX;
    uintptr_t high = walker->stack.high;
    struct frame here = at->frame;
    uint32_t fp_bits = walk_fp_bits(at->fp_at);
    for (; to < end; to++) {
        size_t place = rule_cache_place(here.pc);
        union rule_word found;
        struct frame next;
        while (UNLIKELY(here.slot >= known_slot)) {
            const struct walk_frame *it = &walker->remembered.frame[known - 1];
            if (same_frame(it, &here)) {
                verdict = look_at_older(walker, known - 1);
                if (verdict.holds) {
                    goto out;
                }
                known = verdict.at;
            } else if ((it->how & WALK_GUARDED) != 0 && is_guard_of(it, &here)) {
                here.pc = remembered_pc(it);
                verdict = (struct verdict){1, known - 1};
                goto out;
            } else {
                known--;
            }
            known_slot = known != 0 ? walker->remembered.frame[known - 1].slot : UINTPTR_MAX;
        }
        if (UNLIKELY(walker->rules.place[place].pc != here.pc)) {
            if (is_no_code(here.pc)) {
                break;
            }
            found.word = rule_cache_fill(world->rules, &walker->rules, place, here.pc);
        } else {
            found.word = walker->rules.place[place].rule;
        }
        if (UNLIKELY((found.word & RULE_PLAIN) == 0 ||
                     !step_plainly(high, found.rule, &here, &next))) {
            break;
        }
        to->code = code_of(here.pc, found);
        to->slot = here.slot;
        to->fp = here.fp;
        to->sp = here.sp;
        to->how = how_of(found, fp_bits);
        if (UNLIKELY((found.word & looks) != 0)) {
            if (is_no_code(next.pc)) {
                break;
            }
            end = is_telling(world, at, found.rule, to, &next) ? to : end;
        }
        fp_bits = next_fp_bits(found);
        here = next;
    }
    if (is_no_code(here.pc) && to != walker->path + at->count) {
        to--;
        here = (struct frame){remembered_pc(to), to->slot, to->fp, to->sp};
        fp_bits = to->how & WALK_FP_MASK;
    }
out:
    at->frame = here;
    at->fp_at = (int8_t)(fp_bits >> WALK_FP_AT_SHIFT);
    at->known = known;
    at->count = (uint32_t)(to - walker->path);
    return verdict;
}

/* The newest slot of the shadow stack that is not below this frame. */
static inline uint32_t shadow_skip(struct shadow_stack *shadow, uint32_t index, uintptr_t slot) {
    while ((shadow->slot[index] & ~(uintptr_t)SHADOW_KNOWN) < slot) {
        shadow->slot[index] &= ~(uintptr_t)SHADOW_KNOWN; /* no frame there: a leftover */
        index--;
    }
    return index;
}

/* Whether the slot of the shadow stack that the path has come to tells the present frame's context.
 */
static inline int shadow_tells(const struct walker *walker, const struct path *at) {
    const struct shadow_stack *shadow = &walker->shadow;
    return shadow->slot[at->shadow] == (at->frame.slot | SHADOW_KNOWN) &&
           shadow->entry[at->shadow].pc == at->frame.pc;
}

/* Leaves those remembered frames known that may be the present one, or older. */
static inline void skip_known(const struct walker *walker, struct path *at) {
    const struct walk_frame *frame = walker->remembered.frame;
    while (at->known != 0 && frame[at->known - 1].slot <= at->frame.slot &&
           !same_frame(&frame[at->known - 1], &at->frame)) {
        at->known--;
    }
}

/* Whether the newest of those is the present one, as far as it can tell. */
static inline int is_known(const struct walker *walker, const struct path *at) {
    return at->known != 0 && (at->flags & WALK_UNSURE) == 0 &&
           same_frame(&walker->remembered.frame[at->known - 1], &at->frame);
}

INLINE enum path_end go_out(struct walk_world *world, struct walker *walker, struct path *at,
                            int is_usual, uint32_t *voucher) {
    for (;;) {
        struct verdict verdict = {0, 0};
        if (!is_usual && at->shadow != 0) {
            at->shadow = shadow_skip(&walker->shadow, at->shadow, at->frame.slot);
            if (shadow_tells(walker, at)) {
                return AT_SHADOW;
            }
        }
        if (is_usual && at->flags == 0) {
            verdict = stride(world, walker, at);
        } else if (!at->seeks_word) {
            skip_known(walker, at);
            if (is_known(walker, at)) {
                verdict = look_at_older(walker, at->known - 1);
                if (!verdict.holds) {
                    at->known = verdict.at;
                    continue;
                }
            }
        }
        if (verdict.holds) {
            *voucher = verdict.at;
            return AT_REMEMBERED;
        }
        if (at->context != 0) {
            return AT_WORD; /* to which stride() came */
        }
        if (UNLIKELY(at->known + at->count + 2 >= walker->capacity) && path_grow(walker) != 0) {
            space_lost(world->space, MEMTRACE_LOST_FRAMES, 1);
            return AT_OUTERMOST;
        }
        if (advance(world, walker, at) != 0) {
            return AT_OUTERMOST; /* nothing older is known: the path starts here */
        }
        if (at->context != 0) {
            return AT_WORD;
        }
    }
}

enum path_end path_go_out(struct walk_world *world, struct walker *walker, struct path *at,
                          uint32_t *voucher) {
    return LIKELY(at->odd == 0 && !world->own_frames_only) ? go_out(world, walker, at, 1, voucher)
                                                           : go_out(world, walker, at, 0, voucher);
}

/* --- and back --------------------------------------------------------------------------------- */

/* Field by field: what was just stored so is not read back in one piece without a stall. */
INLINE void copy_frame(struct walk_frame *to, const struct walk_frame *from, uint32_t context) {
    to->code = from->code;
    to->slot = from->slot;
    to->fp = from->fp;
    to->sp = from->sp;
    to->context = context;
    to->how = from->how;
}

static inline void remember(struct walker *walker, const struct walk_frame *it, uint32_t context) {
    struct remembered *remembered = &walker->remembered;
    copy_frame(&remembered->frame[remembered->count], it, context);
    SIGNAL_FENCE(); /* a handler may leave by longjmp: what counts is whole */
    remembered->count++;
    if ((it->how & (WALK_UNSURE | WALK_INTERRUPTED)) == WALK_UNSURE) {
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
    struct frame frame = {remembered_pc(it) | (it->code & RULE_EXACT), it->slot, it->fp, it->sp};
    struct context_id context =
        memo->pc == frame.pc && memo->parent == parent.value && memo->context != 0
            ? (struct context_id){memo->context}
            : child_of(world, walker, parent, it, kind);
    shadow->entry[index] = (struct shadow_entry){frame.pc, parent.value, context.value};
    SIGNAL_FENCE();
    shadow->slot[index] |= SHADOW_KNOWN;
    remembered_start(walker, index, &frame, context.value);
    return context;
}

COLD int path_may_follow(struct walker *walker, struct walk_frame *it,
                         const struct walk_frame *newer) {
    int apart = !stack_same_page(it->slot, newer->slot);
    /* Another thread may run there and place the like of a guard that this one remembers. */
    it->how = (it->how | WALK_UNPATCHED) & ~(uint32_t)WALK_GUARDED;
    walker->remembered.apart |= apart;
    return !apart || stack_is_called(remembered_pc(newer) | (newer->code & RULE_EXACT), it->slot);
}

/* Remembers a frame of the path, or that its words may not be compared later. */
static inline void remember_reached(struct walker *walker, uint32_t i, struct context_id context) {
    struct walk_frame *it = &walker->path[i];
    if (LIKELY(stack_holds(&walker->stack, it->slot)) ||
        path_may_follow(walker, it, &walker->path[i != 0 ? i - 1 : 0])) {
        remember(walker, it, context.value);
    } else {
        struct frame frame = {.pc = remembered_pc(it), .slot = it->slot, .sp = it->sp};
        remembered_start(walker, BASE_UNKNOWN, &frame, context.value);
    }
}

/* Tells the function of frame `it`, whose caller has this sp, the caller's context. The frame's sp.
 */
INLINE uintptr_t fill_word(const struct walk_frame *it, uintptr_t sp, struct context_id context) {
    if (walk_word(it) != 0) {
        *word_below(sp, walk_word(it)) = context.value;
    }
    return frame_sp(it->slot, it->sp);
}

/* From the oldest frame of the path to the newest, from the context of what called it. */
static struct context_id come_back_any(struct walk_world *world, struct walker *walker,
                                       const struct path *at, struct context_id context,
                                       int is_remembering) {
    uint32_t shadow_index = at->shadow;
    uintptr_t sp = frame_sp(at->frame.slot, at->frame.sp); /* the caller's */
    for (uint32_t i = at->count; i-- > 0;) {
        const struct walk_frame *it = &walker->path[i];
        enum context_kind kind = i == 0 ? CONTEXT_CHARGED : CONTEXT_INNER;
        uint32_t index = walker->shadow.capacity != 0
                             ? shadow_find(&walker->shadow, &shadow_index, it->slot)
                             : 0;
        sp = fill_word(it, sp, context);
        is_remembering |= index != 0;
        context = index != 0 ? fill_shadow(world, walker, index, it, context, kind)
                             : child_of(world, walker, context, it, kind);
        if (is_remembering && index == 0) {
            remember_reached(walker, i, context);
        }
    }
    return context;
}

/* The contexts of the next frames inwards, of `count` on the path, below `parent`: ids in a row,
 * then the charged one. What is new is made in one piece, else it is one. */
static inline struct context_path name_next(struct walk_world *world, struct walker *walker,
                                            uint32_t count, struct context_id parent) {
    const struct walk_frame *it = &walker->path[count - 1];
    uint32_t child = context_cache_look(&walker->cache, parent, it->code);
    if (LIKELY(child != 0)) {
        return (struct context_path){child, 1, 0};
    }
    child = context_find(world->tree, parent, it->code);
    if (child == 0 && count > 1) {
        struct context_path made = context_add_path(world->tree, parent, &walker->path->code,
                                                    sizeof *it / sizeof it->code, count);
        if (made.inner != 0) {
            return made;
        }
    }
    if (child == 0 || child == CONTEXT_UNKNOWN) {
        child = context_child(world->tree, parent, it->code,
                              count == 1 ? CONTEXT_CHARGED : CONTEXT_INNER)
                    .value;
    }
    context_cache_keep(&walker->cache, parent, it->code, child);
    return (struct context_path){child, 1, 0};
}

/* The same where there are but usual frames: remembers them. */
static inline struct context_id come_back_usual(struct walk_world *world, struct walker *walker,
                                                const struct path *at, struct context_id context) {
    struct walk_frame *to = walker->remembered.frame + walker->remembered.count;
    for (uint32_t i = at->count; i != 0;) {
        struct context_path next = name_next(world, walker, i, context);
        for (uint32_t k = 0; k < next.inner; k++) {
            context.value = next.first + k;
            copy_frame(to++, &walker->path[--i], context.value);
        }
        if (next.charged != 0) {
            context.value = next.charged;
            copy_frame(to++, &walker->path[--i], context.value);
        }
    }
    SIGNAL_FENCE(); /* a handler may leave by longjmp: what counts is whole */
    walker->remembered.count += at->count;
    return context;
}

/* The same where only frame words are filled. */
static inline struct context_id come_back_words(struct walk_world *world, struct walker *walker,
                                                const struct path *at, struct context_id context) {
    uintptr_t sp = frame_sp(at->frame.slot, at->frame.sp); /* the caller's */
    for (uint32_t i = at->count; i != 0;) {
        struct context_path next = name_next(world, walker, i, context);
        for (uint32_t k = 0; k < next.inner; k++) {
            sp = fill_word(&walker->path[--i], sp, context);
            context.value = next.first + k;
        }
        if (next.charged != 0) {
            sp = fill_word(&walker->path[--i], sp, context);
            context.value = next.charged;
        }
    }
    return context;
}

struct context_id path_come_back(struct walk_world *world, struct walker *walker,
                                 const struct path *at, struct context_id context,
                                 int is_remembering) {
    if (LIKELY(at->odd == 0)) {
        return come_back_usual(world, walker, at, context);
    }
    return LIKELY(at->odd == ODD_WORD && !is_remembering)
               ? come_back_words(world, walker, at, context)
               : come_back_any(world, walker, at, context, is_remembering);
}
