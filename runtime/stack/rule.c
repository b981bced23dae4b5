/* SPDX-License-Identifier: MIT */
/* rule.c: computing and keeping unwind rules. See rule.h. */
#include "runtime/stack/rule.h"

#include "runtime/base/machine.h"
#include "runtime/base/sys.h"
#include "runtime/stack/cfi.h"

enum { FIRST_PLACES = 1024, MOST_RULES = 1 << 24 };

static struct rule_table *new_table(size_t places) {
    struct rule_table *table = sys_map(sizeof *table + places * sizeof(struct rule_place));
    if (table != NULL) {
        table->mask = places - 1;
    }
    return table;
}

void rule_init(struct rules *rules, struct modules *modules) {
    rules->modules = modules;
    rules->lock.held = 0;
    if (rules->table == NULL) {
        rules->table = new_table(FIRST_PLACES);
    }
}

/* Caller holds the lock. */
static void insert(struct rule_table *table, uintptr_t pc, uint64_t word) {
    size_t i = rule_hash(pc) & table->mask;
    while (table->place[i].pc != 0 && table->place[i].pc != pc) {
        i = (i + 1) & table->mask;
    }
    STORE_RELAXED(&table->place[i].word, word);
    STORE_RELEASE(&table->place[i].pc, pc);
}

/* Old tables stay mapped: another thread may stand in one. Their sizes add up to less than the
 * newest's. */
static int grow(struct rules *rules) {
    struct rule_table *old = rules->table;
    struct rule_table *table = new_table((old->mask + 1) * 2);
    if (table == NULL) {
        return -1;
    }
    for (size_t i = 0; i <= old->mask; i++) {
        if (old->place[i].pc != 0) {
            insert(table, old->place[i].pc, old->place[i].word);
        }
    }
    STORE_RELEASE(&rules->table, table);
    return 0;
}

static void keep(struct rules *rules, uintptr_t pc, struct rule rule) {
    struct rule_place place = {.rule = rule};
    if (rules->table == NULL || !trylock_take(&rules->lock)) {
        return;
    }
    if (rules->count * 2 < rules->table->mask || (rules->count < MOST_RULES && grow(rules) == 0)) {
        insert(rules->table, pc, place.word);
        rules->count++;
    }
    trylock_release(&rules->lock);
}

static enum rule_kind classify(const struct cfi_row *row) {
    if (row->signal_frame) {
        return RULE_SIGNAL;
    }
    if (row->return_address.place == CFI_UNDEFINED) {
        return RULE_END;
    }
    if (row->cfa_expression != NULL || row->return_address.place != CFI_OFFSET ||
        row->return_address.offset != -(int64_t)sizeof(uintptr_t) ||
        row->frame_pointer.place == CFI_EXPRESSION || row->frame_pointer.place == CFI_UNSUPPORTED) {
        return RULE_SLOW;
    }
    if (row->cfa_register == MACHINE_DWARF_SP) {
        return RULE_SP;
    }
    return row->cfa_register == MACHINE_DWARF_FP ? RULE_FP : RULE_SLOW;
}

static struct rule from_row(const struct cfi_row *row) {
    struct rule rule = {.kind = classify(row)};
    int64_t words = row->frame_pointer.offset / (int64_t)sizeof(uintptr_t);
    rule.cfa_offset = (int32_t)row->cfa_offset;
    if (row->frame_pointer.place == CFI_OFFSET) {
        rule.fp_offset = words;
    }
    if ((rule.kind == RULE_SP || rule.kind == RULE_FP) &&
        (rule.cfa_offset != row->cfa_offset || rule.fp_offset != (rule.fp_offset ? words : 0) ||
         row->frame_pointer.offset % (int64_t)sizeof(uintptr_t) != 0)) {
        rule.kind = RULE_SLOW; /* does not fit: interpreted */
    }
    return rule;
}

COLD struct rule rule_compute(struct rules *rules, uintptr_t pc) {
    uintptr_t address = (pc & RULE_EXACT) ? pc & ~RULE_EXACT : pc - 1;
    struct module_place place;
    struct cfi_row row;
    struct rule rule = {.kind = RULE_UNKNOWN, .own = 1};
    if (module_find(rules->modules, address, &place) != 0) {
        return rule; /* not kept: code may be mapped there later */
    }
    if (place.eh_frame_header != NULL) {
        if (cfi_find(place.eh_frame_header, address, &row) == 0) {
            rule = from_row(&row);
        } else if (cfi_find(place.eh_frame_header, pc & ~RULE_EXACT, &row) == 0) {
            rule = from_row(&row); /* "returns" to a start: a fiber's first function */
            rule.entry = 1;
        }
    }
    rule.entry |= rule.kind == RULE_SIGNAL;
    rule.module = place.id;
    rule.hidden = (uintptr_t)rule_compute - place.start < place.end - place.start;
    rule.own = place.own != 0;
    keep(rules, pc, rule);
    return rule;
}

void rule_forget(struct rules *rules, uintptr_t start, uintptr_t end) {
    struct rule_table *table = LOAD_ACQUIRE(&rules->table);
    for (size_t i = 0; table != NULL && i <= table->mask; i++) {
        uintptr_t pc = LOAD_RELAXED(&table->place[i].pc) & ~RULE_EXACT;
        if (pc >= start && pc <= end) {
            STORE_RELAXED(&table->place[i].word, 0); /* RULE_NONE: computed anew when seen */
        }
    }
}
