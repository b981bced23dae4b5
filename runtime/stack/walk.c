/* SPDX-License-Identifier: MIT */
/* walk.c: stepping, recognising, remembering. See walk.h. */
#include "runtime/stack/walk.h"

#include "runtime/base/machine.h"
#include "runtime/base/sys.h"
#include "runtime/stack/cfi.h"
#include "runtime/stack/expression.h"

enum { FIRST_CAPACITY = 128, MOST_FRAMES = 1 << 22 };

static size_t bytes_of(uint32_t frames) {
    return frames * sizeof(struct walk_frame);
}

int walk_init(struct walker *walker, uintptr_t low, uintptr_t high) {
    walker->capacity = FIRST_CAPACITY;
    walker->low = low;
    walker->high = high;
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

static COLD int grow(struct walker *walker) {
    size_t old = bytes_of(walker->capacity);
    void *remembered;
    void *fresh;
    if (walker->capacity >= MOST_FRAMES) {
        return -1;
    }
    remembered = sys_grow_map(walker->remembered, old, 2 * old);
    if (remembered == NULL) {
        return -1;
    }
    walker->remembered = remembered;
    fresh = sys_grow_map(walker->fresh, old, 2 * old);
    if (fresh == NULL) {
        return -1; /* remembered is longer than capacity says: harmless */
    }
    walker->fresh = fresh;
    walker->capacity *= 2;
    return 0;
}

/* Word by word: what was just stored in words is not read back in one piece without a stall. */
static inline void copy_frame(struct frame *to, const struct frame *from) {
    to->pc = from->pc;
    to->slot = from->slot;
    to->fp = from->fp;
}

static inline void remember_frame(struct walk_frame *to, const struct walk_frame *from) {
    copy_frame(&to->frame, &from->frame);
    to->context = from->context;
    to->fp_at = from->fp_at;
    to->flags = from->flags;
    to->module = from->module;
}

/* --- stepping -------------------------------------------------------------------------------- */

static uintptr_t load(uintptr_t address) {
    return *(const uintptr_t *)address;
}

/* Words of the thread's own stack above the present frame can be read; elsewhere (fibers, signal
 * stacks, threads that others made) the kernel is asked first. */
static int can_read(const struct walker *walker, uintptr_t address) {
    if (address % sizeof(uintptr_t) != 0) {
        return 0;
    }
    if (LIKELY(address >= walker->low && address < walker->high)) {
        return 1;
    }
    return sys_readable((const void *)address);
}

/* The caller's frame of a kernel signal frame: every register lies in memory. */
static int step_signal(const struct walker *walker, const struct frame *from, struct frame *to) {
    uintptr_t context = from->slot + sizeof(uintptr_t);
    if (!can_read(walker, context) || !can_read(walker, context + MACHINE_SIGNAL_PC)) {
        return -1;
    }
    to->pc = load(context + MACHINE_SIGNAL_PC) | RULE_EXACT;
    to->fp = load(context + MACHINE_SIGNAL_FP);
    /* No return slot holds this pc; its place is the word below the interrupted stack pointer. */
    to->slot = load(context + MACHINE_SIGNAL_SP) - sizeof(uintptr_t);
    return 0;
}

static int register_value(const struct walker *walker, const struct cfi_register *reg,
                          const struct expression_machine *machine, uintptr_t cfa,
                          uintptr_t *value) {
    uintptr_t address = cfa + (uintptr_t)reg->offset;
    switch (reg->place) {
    case CFI_UNCHANGED:
        return 0;
    case CFI_EXPRESSION:
        if (expression_evaluate(reg->expression, machine, &cfa, &address) != 0) {
            return -1;
        }
        break;
    case CFI_OFFSET:
        break;
    default:
        return -1;
    }
    if (!can_read(walker, address)) {
        return -1;
    }
    *value = load(address);
    return 0;
}

static COLD int step_interpreted(struct walk_world *world, const struct walker *walker,
                                 const struct frame *from, struct frame *to) {
    struct expression_machine machine = {from->pc & ~RULE_EXACT, from->slot + sizeof(uintptr_t),
                                         from->fp};
    uintptr_t address = machine.pc - ((from->pc & RULE_EXACT) == 0);
    struct module_place place;
    struct cfi_row row;
    uintptr_t cfa;
    if (module_find(world->rules->modules, address, &place) != 0 || place.eh_frame_header == NULL ||
        (cfi_find(place.eh_frame_header, address, &row) != 0 &&
         cfi_find(place.eh_frame_header, machine.pc, &row) != 0)) {
        return -1;
    }
    if (row.cfa_expression != NULL) {
        if (expression_evaluate(row.cfa_expression, &machine, NULL, &cfa) != 0) {
            return -1;
        }
    } else if (row.cfa_register == MACHINE_DWARF_SP || row.cfa_register == MACHINE_DWARF_FP) {
        cfa = (row.cfa_register == MACHINE_DWARF_SP ? machine.sp : machine.fp) +
              (uintptr_t)row.cfa_offset;
    } else {
        return -1;
    }
    to->fp = from->fp;
    to->slot = cfa - sizeof(uintptr_t);
    if (row.frame_pointer.place != CFI_UNSUPPORTED &&
        register_value(walker, &row.frame_pointer, &machine, cfa, &to->fp) != 0) {
        return -1;
    }
    return row.return_address.place == CFI_UNCHANGED
               ? -1
               : register_value(walker, &row.return_address, &machine, cfa, &to->pc);
}

/* No unwind information: the frame pointer may still chain, if what it leads to is code. */
static COLD int step_guessing(struct walk_world *world, const struct walker *walker,
                              const struct frame *from, struct frame *to) {
    struct module_place place;
    if (walker->entry != 0 && from->slot + sizeof(uintptr_t) >= walker->entry) {
        to->pc = 0; /* the loader's first code, which nobody called and nothing describes */
        return 0;
    }
    if (from->slot < walker->low || from->slot >= walker->high || from->fp <= from->slot ||
        from->fp < walker->low || from->fp + 16 > walker->high ||
        from->fp % sizeof(uintptr_t) != 0) {
        return -1;
    }
    to->slot = from->fp + sizeof(uintptr_t);
    to->pc = load(to->slot);
    to->fp = load(from->fp);
    return module_find(world->rules->modules, to->pc - 1, &place);
}

enum step { STEP_SURE, STEP_UNSURE, STEP_END, STEP_LOST };

static COLD enum step step_slow(struct walk_world *world, const struct walker *walker,
                                struct rule rule, const struct frame *from, struct frame *to) {
    int failed;
    switch (rule.kind) {
    case RULE_END:
        return STEP_END;
    case RULE_SIGNAL:
        failed = step_signal(walker, from, to);
        break;
    case RULE_SLOW:
        failed = step_interpreted(world, walker, from, to);
        break;
    default:
        failed = step_guessing(world, walker, from, to);
    }
    return failed ? STEP_LOST : STEP_UNSURE;
}

/* One frame outwards. */
static inline enum step step(struct walk_world *world, const struct walker *walker,
                             struct rule rule, const struct frame *from, struct frame *to) {
    uintptr_t cfa;
    if (UNLIKELY(rule.kind != RULE_SP && rule.kind != RULE_FP)) {
        return step_slow(world, walker, rule, from, to);
    }
    cfa = (rule.kind == RULE_SP ? from->slot + sizeof(uintptr_t) : from->fp) +
          (uintptr_t)(intptr_t)rule.cfa_offset;
    to->slot = cfa - sizeof(uintptr_t);
    if (UNLIKELY(to->slot <= from->slot || !can_read(walker, to->slot))) {
        return STEP_LOST;
    }
    to->pc = load(to->slot);
    to->fp = from->fp;
    if (rule.fp_offset != 0) {
        uintptr_t place = cfa + (uintptr_t)(intptr_t)rule.fp_offset * sizeof(uintptr_t);
        if (UNLIKELY(!can_read(walker, place))) {
            return STEP_LOST;
        }
        to->fp = load(place);
    }
    return STEP_SURE;
}

/* --- recognising ------------------------------------------------------------------------------ */

/* Whether the frames remembered below index `count` are all still there. Returns how many are, from
 * the oldest on: the same inputs give the same chain. */
static uint32_t count_intact(const struct walk_frame *remembered, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const struct walk_frame *it = &remembered[i];
        if ((it->flags & WALK_UNSURE) != 0 || load(it->frame.slot) != it->frame.pc ||
            (it->fp_at != 0 &&
             load(it->frame.slot + (uintptr_t)(intptr_t)it->fp_at) != it->frame.fp)) {
            return i;
        }
    }
    return count;
}

static inline int same_frame(const struct frame *a, const struct frame *b) {
    return a->slot == b->slot && a->pc == b->pc && a->fp == b->fp;
}

/* Whether the oldest remembered frame still stands on what it stood on. */
static inline int base_holds(const struct walker *walker) {
    const struct shadow_stack *shadow = &walker->shadow;
    const struct shadow_entry *now = &shadow->entry[walker->base_index];
    return walker->base_index == 0 ||
           (walker->base_index <= shadow->top &&
            shadow->slot[walker->base_index] == walker->base_slot && now->pc == walker->base_pc &&
            now->context == walker->base_context);
}

/* The frames remembered from here on are newer than this slot, which alone vouches for all older.
 */
static inline void remember_above(struct walker *walker, uint32_t index, uintptr_t slot,
                                  uintptr_t pc, uint32_t context) {
    walker->remembered_count = 0;
    walker->base_index = index;
    walker->base_slot = slot | SHADOW_KNOWN;
    walker->base_pc = pc;
    walker->base_context = context;
}

/* Is this frame the remembered one, with everything older unchanged? If so its index + 1. Forgets
 * what proved wrong: afterwards every remembered frame is older than this one, or is this one. */
static inline uint32_t recognise(struct walker *walker, const struct frame *frame) {
    uint32_t i = walker->remembered_count;
    uint32_t intact;
    if (!base_holds(walker)) {
        walker->remembered_count = 0;
        return 0;
    }
    while (i > 0 && walker->remembered[i - 1].frame.slot < frame->slot) {
        i--;
    }
    if (i > 0 && walker->remembered[i - 1].frame.slot == frame->slot &&
        !same_frame(&walker->remembered[i - 1].frame, frame)) {
        i--;
    }
    walker->remembered_count = i;
    if (i == 0 || walker->remembered[i - 1].frame.slot != frame->slot ||
        (walker->remembered[i - 1].flags & WALK_UNSURE) != 0) {
        return 0;
    }
    intact = count_intact(walker->remembered, i - 1);
    if (intact != i - 1) {
        walker->remembered_count = intact;
        return 0;
    }
    return i;
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

static inline struct context_id child_of(struct walk_world *world, struct walker *walker,
                                         struct context_id parent, const struct walk_frame *fresh,
                                         enum context_kind kind) {
    uint64_t frame = (fresh->frame.pc & (MEMTRACE_FRAME_EXACT | MEMTRACE_FRAME_ADDRESS_MASK)) |
                     (uint64_t)fresh->module << MEMTRACE_FRAME_MODULE_SHIFT;
    if (UNLIKELY(fresh->flags != 0)) {
        if (fresh->flags & WALK_SKIPPED) {
            return parent;
        }
        frame |= fresh->flags & WALK_ENTRY ? MEMTRACE_FRAME_EXACT : 0;
    }
    return context_cached_child(world->tree, &walker->cache, parent, frame, kind);
}

/* Fills the shadow slot of a frame whose parent's context is now known. */
static inline void shadow_fill(struct shadow_stack *shadow, uint32_t index, uintptr_t pc,
                               struct context_id parent, struct context_id context) {
    shadow->entry[index] = (struct shadow_entry){pc, parent.value, context.value};
    SIGNAL_FENCE();
    shadow->slot[index] |= SHADOW_KNOWN;
}

/* From the oldest fresh frame to the newest. `remember`: what lies below is remembered too; only
 * frames on the thread's own stack are, since their words can always be read. */
static inline struct context_id come_back(struct walk_world *world, struct walker *walker,
                                          struct context_id context, uint32_t count,
                                          uint32_t shadow_index, int remember) {
    struct shadow_stack *shadow = &walker->shadow;
    for (uint32_t i = count; i-- > 0;) {
        struct walk_frame *fresh = &walker->fresh[i];
        struct context_id parent = context;
        enum context_kind kind = i == 0 ? CONTEXT_CHARGED : CONTEXT_INNER;
        uint32_t at = shadow_index;
        if (shadow->capacity != 0) {
            while (at < shadow->top &&
                   (shadow->slot[at + 1] & ~(uintptr_t)SHADOW_KNOWN) >= fresh->frame.slot) {
                at++;
            }
            shadow_index = at;
            at = (shadow->slot[at] & ~(uintptr_t)SHADOW_KNOWN) == fresh->frame.slot ? at : 0;
        }
        if (at != 0 && shadow->capacity != 0) {
            const struct shadow_entry *memo = &shadow->entry[at];
            context =
                memo->pc == fresh->frame.pc && memo->parent == parent.value && memo->context != 0
                    ? (struct context_id){memo->context}
                    : child_of(world, walker, parent, fresh, kind);
            shadow_fill(shadow, at, fresh->frame.pc, parent, context);
            remember_above(walker, at, fresh->frame.slot, fresh->frame.pc, context.value);
            remember = 1;
        } else {
            context = child_of(world, walker, parent, fresh, kind);
        }
        fresh->context = context.value;
        remember = remember && fresh->frame.slot >= walker->low && fresh->frame.slot < walker->high;
        if (remember && at == 0) {
            remember_frame(&walker->remembered[walker->remembered_count++], fresh);
        }
    }
    return context;
}

/* --- the walk --------------------------------------------------------------------------------- */

/* How far out a walk has come. */
struct progress {
    struct frame frame;
    uint32_t count; /* fresh frames, this one left out */
    uint32_t shadow_index;
    int32_t fp_at;
    enum step how; /* this frame was reached */
};

/* Notes the present frame as fresh and goes to the next. 0, or -1: the walk ends here. */
static inline int advance(struct walk_world *world, struct walker *walker, struct progress *at) {
    struct rule rule = rule_find(world->rules, at->frame.pc);
    struct walk_frame *fresh = &walker->fresh[at->count++];
    struct frame next;
    copy_frame(&fresh->frame, &at->frame);
    fresh->fp_at = at->fp_at;
    fresh->module = rule.module;
    fresh->flags =
        (at->how == STEP_UNSURE ? WALK_UNSURE : 0) |
        (UNLIKELY(rule.hidden || (world->own_frames_only && !rule.own)) ? WALK_SKIPPED : 0);
    at->how = step(world, walker, rule, &at->frame, &next);
    if (UNLIKELY(at->how >= STEP_END || next.pc == 0)) {
        /* A fiber's stack just ends, in code that nobody called: only our own has a known end. */
        if (at->how == STEP_LOST && at->frame.slot >= walker->low &&
            at->frame.slot < walker->high) {
            space_lost(world->space, MEMTRACE_LOST_FRAMES, 1);
        }
        return -1;
    }
    at->fp_at = rule.kind <= RULE_FP && rule.fp_offset != 0
                    ? (int32_t)(rule.fp_offset + 1) * (int32_t)sizeof(uintptr_t)
                    : 0;
    copy_frame(&at->frame, &next);
    return 0;
}

struct context_id walk_context_slow(struct walk_world *world, struct walker *walker, uintptr_t pc,
                                    uintptr_t slot, uintptr_t fp) {
    struct shadow_stack *shadow = &walker->shadow;
    struct progress at = {.frame = {pc, slot, fp},
                          .shadow_index = shadow->capacity != 0 ? shadow->top : 0};
    for (;;) {
        uint32_t index;
        if (at.shadow_index != 0) {
            uint32_t i = shadow_skip(shadow, at.shadow_index, at.frame.slot);
            at.shadow_index = i;
            if (shadow->slot[i] == (at.frame.slot | SHADOW_KNOWN) &&
                shadow->entry[i].pc == at.frame.pc) {
                struct context_id base = {shadow->entry[i].context};
                remember_above(walker, i, at.frame.slot, at.frame.pc, base.value);
                return come_back(world, walker, base, at.count, i, 1);
            }
        }
        index = at.how == STEP_SURE ? recognise(walker, &at.frame) : 0;
        if (index != 0) {
            struct context_id base = {walker->remembered[index - 1].context};
            return come_back(world, walker, base, at.count, at.shadow_index, 1);
        }
        if (UNLIKELY(walker->remembered_count + at.count + 2 >= walker->capacity) &&
            grow(walker) != 0) {
            space_lost(world->space, MEMTRACE_LOST_FRAMES, 1);
            break;
        }
        if (advance(world, walker, &at) != 0) {
            break;
        }
    }
    remember_above(walker, 0, 0, 0, 0); /* nothing older is known: the path starts here */
    return come_back(world, walker, (struct context_id){0}, at.count, at.shadow_index, 1);
}
