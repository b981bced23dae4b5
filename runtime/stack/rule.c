/* SPDX-License-Identifier: MIT */
/* rule.c: computing and keeping unwind rules, and where functions keep their frame words. See
 * rule.h. */
#include "runtime/stack/rule.h"

#include "runtime/base/sys.h"
#include "runtime/libc/libc.h"
#include "runtime/machine/machine.h"
#include "runtime/stack/cfi.h"
#include "runtime/stack/exidx.h"
#include "runtime/stack/frame_word.h"
#include "runtime/stack/jit.h"

#include <string.h>

enum { FIRST_PLACES = 1024, MOST_RULES = 1 << 24 };

static size_t rule_table_bytes(size_t places) {
    return sizeof(struct rule_table) + places * sizeof(uint64_t);
}

static struct rule_table *rule_new_table(size_t places, uint64_t *numbered) {
    struct rule_table *table = numbered != NULL ? sys_map(rule_table_bytes(places)) : NULL;
    if (table != NULL) {
        table->mask = places - 1;
        table->numbered = numbered;
    }
    return table;
}

/* An empty table with numbers of its own. */
static struct rule_table *new_world(void) {
    uint64_t *numbered = sys_map(RULE_NUMBERS * sizeof *numbered);
    struct rule_table *table = rule_new_table(FIRST_PLACES, numbered);
    if (table == NULL && numbered != NULL) {
        sys_unmap(numbered, RULE_NUMBERS * sizeof *numbered);
    }
    return table;
}

/* A table that is replaced keeps its address, since another thread may stand in it, but not its
 * memory: who finds zeros there computes the rule for itself. */
static void discard(struct rule_table *table) {
    sys_discard(table->place + MEMTRACE_PAGE_SIZE / sizeof(uint64_t),
                rule_table_bytes(table->mask + 1) - MEMTRACE_PAGE_SIZE);
}

void rule_init(struct rules *rules, struct modules *modules, struct areas *areas) {
    rules->modules = modules;
    rules->areas = areas;
    rules->lock.held = 0;
    rules->debug_frames.lock.held = 0;
    rules->loader = libc_loader();
    if (rules->table == NULL) {
        rules->table = new_world();
        rules->numbers = 1;
    }
}

/* The number of this rule, made if it is new; 0: there are too many. Caller holds the lock. */
static uint64_t rule_number(struct rules *rules, uint64_t rule) {
    uint64_t *numbered = rules->table->numbered;
    uint16_t *hint = &rules->number_hint[rule_hash(rule) % RULE_HINTS];
    uint32_t number = *hint;
    if (number != 0 && numbered[number] == rule) {
        return number;
    }
    if (rules->numbers == RULE_NUMBERS) {
        return 0;
    }
    for (number = 1; number < rules->numbers && numbered[number] != rule; number++) {
    }
    if (number == rules->numbers) {
        numbered[number] = rule;
        rules->numbers++;
    }
    *hint = (uint16_t)number;
    return number;
}

/* How many places more are taken. Caller holds the lock. */
static size_t rule_insert(struct rule_table *table, uint64_t key, uint64_t number) {
    size_t i = rule_hash(key) & table->mask;
    size_t taken;
    while (table->place[i] != 0 && rule_place_key(table->place[i]) != key) {
        i = (i + 1) & table->mask;
    }
    taken = table->place[i] == 0;
    STORE_RELEASE(&table->place[i], key | number << RULE_KEY_BITS);
    return taken;
}

/* Leaves out what was forgotten. */
static int rule_grow(struct rules *rules) {
    struct rule_table *old = rules->table;
    struct rule_table *table = rule_new_table((old->mask + 1) * 2, old->numbered);
    if (table == NULL) {
        return -1;
    }
    rules->count = 0;
    for (size_t i = 0; i <= old->mask; i++) {
        uint64_t place = old->place[i];
        if (place >> RULE_KEY_BITS != 0) {
            rules->count += rule_insert(table, rule_place_key(place), place >> RULE_KEY_BITS);
        }
    }
    STORE_RELEASE(&rules->table, table);
    discard(old);
    return 0;
}

static void rule_keep(struct rules *rules, uint64_t pc, struct rule rule) {
    union rule_word word = {.rule = rule};
    uint64_t number;
    if (rules->table == NULL || rule_key(pc) >> RULE_KEY_BITS != 0 || !trylock_take(&rules->lock)) {
        return;
    }
    if (rules->count * 4 < rules->table->mask * 3 ||
        (rules->count < MOST_RULES && rule_grow(rules) == 0)) {
        number = rule_number(rules, word.word);
        if (number != 0) {
            rules->count += rule_insert(rules->table, rule_key(pc), number);
        }
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
        (MACHINE_CALL_PUSHES && row->return_address.offset != -(int64_t)sizeof(uintptr_t)) ||
        row->frame_pointer.place == CFI_EXPRESSION || row->frame_pointer.place == CFI_UNSUPPORTED) {
        return RULE_SLOW;
    }
    if (row->cfa_register == MACHINE_DWARF_SP) {
        return RULE_SP;
    }
    return row->cfa_register == MACHINE_DWARF_FP ||
                   (MACHINE_HAS_SECOND_FP && row->cfa_register == MACHINE_DWARF_SECOND_FP)
               ? RULE_FP
               : RULE_SLOW;
}

/* Whether so many bytes are what a rule's field says. */
static int fits(int64_t offset, int64_t field) {
    return offset == field * (int64_t)sizeof(uintptr_t);
}

/* The same where calls push nothing, of a rule whose kind is known: where the return address lies
 * goes into fp_offset, by the CFA or by the register, whichever fits. */
static struct rule where_saved(struct rule rule, const struct cfi_row *row) {
    int64_t word = sizeof(uintptr_t);
    int saves_fp = row->frame_pointer.place == CFI_OFFSET;
    int64_t below = row->return_address.offset;
    int64_t above = row->cfa_offset + below;
    rule.cfa_offset = row->cfa_offset / word;
    rule.own_fp = rule.kind == RULE_SP && saves_fp;
    rule.fp_offset = below / word;
    if (!fits(below, rule.fp_offset) || rule.fp_offset >= 0) {
        rule.fp_offset = above / word;
        if (!fits(above, rule.fp_offset) || rule.fp_offset < 0) {
            rule.kind = RULE_SLOW;
        }
    }
    if (!fits(row->cfa_offset, rule.cfa_offset) || rule_saves_fp(rule) != saves_fp ||
        (saves_fp && row->frame_pointer.offset != below - word)) {
        rule.kind = RULE_SLOW;
    }
    return rule;
}

/* How many words below the return address a frame pointer was saved; 0: it was not, -1: that cannot
 * be told. */
static int words_below(const struct cfi_register *saved, int64_t slot) {
    int64_t words = (slot - saved->offset) / (int64_t)sizeof(uintptr_t);
    if (saved->place == CFI_UNCHANGED) {
        return 0;
    }
    return saved->place == CFI_OFFSET && words > 0 && words <= RULE_SAVED_FP &&
                   fits(slot - saved->offset, words)
               ? (int)words
               : -1;
}

/* The same where functions have one of two frame pointers and may save both. */
static struct rule where_both_saved(struct rule rule, const struct cfi_row *row) {
    int64_t below = row->return_address.offset;
    int first = words_below(&row->frame_pointer, below);
    int second = words_below(&row->second_frame_pointer, below);
    struct cfi_row alone = *row;
    alone.frame_pointer.place = rule.kind == RULE_FP ? CFI_OFFSET : CFI_UNCHANGED;
    alone.frame_pointer.offset = below - (int64_t)sizeof(uintptr_t);
    rule = where_saved(rule, &alone);
    if (first < 0 || second < 0) {
        rule.kind = RULE_SLOW;
        return rule;
    }
    rule.frame_word = (uint32_t)first | (uint32_t)second << RULE_SAVED_SECOND_SHIFT;
    if (row->cfa_register == MACHINE_DWARF_SECOND_FP) {
        rule.frame_word |= RULE_BY_SECOND_FP;
    }
    return rule;
}

static struct rule from_row(const struct cfi_row *row) {
    struct rule rule = {.kind = classify(row),
                        .unpatched = row->may_catch != 0,
                        .loader = row->is_signed && machine_signs()};
    int64_t fp_offset = row->frame_pointer.place == CFI_OFFSET ? row->frame_pointer.offset : 0;
    if (!MACHINE_CALL_PUSHES && (rule.kind == RULE_SP || rule.kind == RULE_FP)) {
        return MACHINE_HAS_SECOND_FP ? where_both_saved(rule, row) : where_saved(rule, row);
    }
    rule.cfa_offset = row->cfa_offset / (int64_t)sizeof(uintptr_t);
    rule.fp_offset = fp_offset / (int64_t)sizeof(uintptr_t);
    rule.own_fp = rule.kind == RULE_SP && fp_offset != 0;
    if ((rule.kind == RULE_SP || rule.kind == RULE_FP) &&
        (!fits(row->cfa_offset, rule.cfa_offset) || !fits(fp_offset, rule.fp_offset) ||
         fp_offset > 0)) {
        rule.kind = RULE_SLOW; /* interpreted */
    }
    return rule;
}

/* --- frame words (frame_word.h) --------------------------------------------------------------- */

#define FRAME_WORD_SIGN (MACHINE_STORES_CONSTANTS ? FRAME_WORD_FRESH : FRAME_WORD_MARK)

/* How far the CFA is above the register that the store goes by; negative: not known. */
static int64_t frame_word_cfa_above(const struct cfi_row *row, const struct machine_store *store) {
    int64_t distance = 0;
    if (row->cfa_register != store->base_register) {
        distance = MACHINE_TELLS_FP_ABOVE_SP && row->cfa_register == MACHINE_DWARF_FP &&
                           store->base_register == MACHINE_DWARF_SP
                       ? machine_fp_above_sp(row->start, store->start)
                       : -1;
    }
    return distance < 0 ? -1 : row->cfa_offset + distance;
}

/* The place that one store tells; 0: not relative to the CFA. */
static uint32_t frame_word_place(const uint8_t *eh_frame_header,
                                 const struct machine_store *store) {
    struct cfi_row row;
    int64_t above, below;
    if (cfi_find(eh_frame_header, store->start, &row) != 0 || row.cfa_expression != NULL ||
        (above = frame_word_cfa_above(&row, store)) < 0) {
        return 0;
    }
    below = above - store->displacement;
    /* Where calls push it the return address lies above. */
    return below > (MACHINE_CALL_PUSHES ? (int64_t)sizeof(uintptr_t) : 0) && below <= INT32_MAX &&
                   below % 4 == 0
               ? (uint32_t)below
               : 0;
}

uint32_t frame_word_below_cfa(const uint8_t *eh_frame_header, const struct cfi_row *row) {
    struct machine_store store;
    uint32_t place = 0;
    uintptr_t from = row->start;
    while (MACHINE_HAS_WORDS && machine_find_store(from, row->end, FRAME_WORD_SIGN, &store)) {
        uint32_t next = frame_word_place(eh_frame_header, &store);
        if (next == 0 || (place != 0 && place != next)) {
            return 0; /* two words: a function with one of its own was inlined here later */
        }
        place = next;
        from = store.end;
    }
    return place;
}

/* Where the function keeps its frame word, in the rule's unit; 0 also if that does not fit. */
static uint32_t find_frame_word(struct rules *rules, const struct module_place *place,
                                const struct cfi_row *row) {
    uint64_t *known = &rules->function[rule_hash(row->start) % RULE_FUNCTIONS];
    uint64_t value = LOAD_RELAXED(known);
    if (value >> RULE_WORD_BITS != row->start) {
        uint64_t words = frame_word_below_cfa(place->eh_frame_header, row) / sizeof(uint32_t);
        value = (uint64_t)row->start << RULE_WORD_BITS;
        value |= words >> RULE_WORD_BITS == 0 ? words : 0;
        if (place->is_known) {
            STORE_RELAXED(known, value);
        }
    }
    return (uint32_t)(value & ((1u << RULE_WORD_BITS) - 1));
}

static int lies_in(const struct module_place *place, uintptr_t address) {
    return address - place->start < place->end - place->start;
}

/* Whether the return slot and the caller's fp lie above the frame's own slot, as far as that can be
 * told without the frame: by sp, that is. */
static int leads_out(struct rule rule) {
    if (!MACHINE_CALL_PUSHES && rule.kind == RULE_SP) {
        int64_t slot = rule.fp_offset < 0 ? rule.cfa_offset + rule.fp_offset : rule.fp_offset;
        return slot >= rule_lowest_saved(rule) && slot < rule.cfa_offset;
    }
    return rule.kind == RULE_FP ||
           (rule.kind == RULE_SP && rule.cfa_offset > 0 && rule.cfa_offset + rule.fp_offset >= 0);
}

/* Where only frame pointers count, every function that has a caller is said to keep one. */
static struct rule follow_frame_pointer(struct rule rule) {
    if (rule.kind != RULE_SIGNAL && rule.kind != RULE_END) {
        rule.kind = RULE_FP;
        rule.cfa_offset = 2 + MACHINE_FP_RECORD / (int)sizeof(uintptr_t);
        rule.fp_offset = MACHINE_CALL_PUSHES ? -2 : -1;
        rule.own_fp = 0;
        rule.frame_word = 0;
    }
    return rule;
}

/* Whether a frame pointer is its function's CFA, the stack pointer of what called it. */
enum { FP_TELLS_SP = MACHINE_FP_RECORD == -2 * (int)sizeof(uintptr_t) };

/* The rule's area: that of its return address in this module, `pc` as a frame has it. */
static uint32_t area_of(struct rules *rules, struct rule rule, uint64_t pc, uint32_t module) {
    uint64_t frame = pc | (uint64_t)module << MEMTRACE_FRAME_MODULE_SHIFT;
    return area_find(rules->areas, rule.entry ? frame | MEMTRACE_FRAME_EXACT : frame);
}

/* Whether a handler returns by this address, which no table describes. (Who follows frame pointers
 * alone has no stack pointer by which to find the interrupted registers, unless these tell it; but
 * where they do not, the kernel makes a link of that chain.) */
static int returns_from_signal(const struct rules *rules, uint64_t pc) {
    return (MACHINE_HAS_SIGNAL_CODE || !libc_describes_signals()) &&
           (!rules->by_frame_pointer || FP_TELLS_SP) && (pc & RULE_EXACT) == 0 &&
           sys_readable((const void *)(uintptr_t)pc) &&
           sys_readable((const void *)(uintptr_t)(pc + 7)) && machine_returns_from_signal(pc);
}

/* (The kernel's code stays, wherever it has put it.) */
static COLD struct rule compute_for_signal(struct rules *rules, uint64_t pc) {
    struct rule rule = {.kind = RULE_SIGNAL, .own = 1, .entry = 1, .unpatched = 1};
    struct module_place place;
    int is_known = module_find(rules->modules, pc, &place) == 0;
    rule.area = area_of(rules, rule, pc, is_known ? place.id : 0);
    rule_keep(rules, pc, rule);
    return rule;
}

/* Code that the loader does not know. Its rules are never plain: who made it may know its frames by
 * their return addresses, so no guard may stand there. */
static COLD struct rule compute_for_jit(struct rules *rules, uint64_t pc, uintptr_t address) {
    struct rule rule = {.kind = RULE_UNKNOWN, .own = 1, .unpatched = 1};
    struct cfi_row row;
    rule.area = area_of(rules, rule, pc, 0);
    if (jit_find(address, &row) != 0) {
        return rule; /* not kept: code may be mapped there later */
    }
    rule = from_row(&row);
    if (rules->by_frame_pointer) {
        rule = follow_frame_pointer(rule);
    }
    rule.own = rule.unpatched = 1;
    rule.loader |= MACHINE_MAY_SIGN; /* where no table tells */
    rule.area = area_of(rules, rule, pc, 0);
    rule_keep(rules, pc, rule);
    return rule;
}

static int is_go(const struct rules *rules, const struct module_place *place) {
    return MACHINE_KNOWS_GO && module_is_go(rules->modules, place);
}

/* The loader's first code is described nowhere, and met in every process: not worth a file. What Go
 * has in files is not about stacks that are switched (step.c). */
int rule_find_row(struct rules *rules, struct module_place *place, uintptr_t address,
                  struct cfi_row *row) {
    const uint8_t *table = place->eh_frame_header;
    const struct memtrace_module *module;
    int found;
    if (table != NULL && (MACHINE_HAS_EXIDX ? exidx_find(table, place->unwind_entries, address, row)
                                            : cfi_find(table, address, row)) == 0) {
        return 0;
    }
    module = module_get(rules->modules, place->id);
    if (module == NULL || lies_in(place, rules->loader) || is_go(rules, place)) {
        return -1;
    }
    found = debug_frame_find(&rules->debug_frames, module, address, row);
    place->is_known &= found <= 0;
    return found == 0 ? 0 : -1;
}

COLD struct rule rule_compute(struct rules *rules, uint64_t pc) {
    uintptr_t address = (pc & RULE_EXACT) ? pc & ~RULE_EXACT : pc - 1;
    struct module_place place;
    struct cfi_row row;
    struct rule rule = {.kind = RULE_UNKNOWN, .own = 1};
    struct machine_way_back way;
    if (returns_from_signal(rules, pc)) {
        return compute_for_signal(rules, pc);
    }
    if (module_find(rules->modules, address, &place) != 0) {
        return compute_for_jit(rules, pc, address);
    }
    if (rule_find_row(rules, &place, address, &row) == 0) {
        rule = from_row(&row);
        /* An interrupted instruction may come before the word is made. */
        if (MACHINE_HAS_WORDS && (rule.kind == RULE_SP || rule.kind == RULE_FP) &&
            !(pc & RULE_EXACT) && place.eh_frame_header != NULL) {
            rule.frame_word = find_frame_word(rules, &place, &row);
            if (rule.frame_word != 0) {
                STORE_RELAXED(&rules->has_frame_words, 1);
            }
        }
    } else if (rule_find_row(rules, &place, pc & ~RULE_EXACT, &row) == 0) {
        rule = from_row(&row); /* "returns" to a start: a fiber's first function */
        rule.entry = 1;
        if (rule.kind != RULE_SIGNAL) {
            rule.kind = RULE_END; /* nobody called it, whatever word lies there */
        }
    } else if (libc_is_outermost(pc)) {
        rule.kind = RULE_END;
    } else if (is_go(rules, &place)) { /* by fp, until Go says that nothing is further out */
        const struct memtrace_module *module = module_get(rules->modules, place.id);
        rule.kind = MACHINE_KNOWS_GO && go_table_is_outermost(&rules->go_tables, module, address)
                        ? RULE_END
                        : RULE_GO;
    }
    /* (Of an interrupted function, which may keep a frame pointer elsewhere or none yet, its table
     * tells more.) */
    if (UNLIKELY(rules->by_frame_pointer) &&
        !(FP_TELLS_SP && (pc & RULE_EXACT) != 0 && rule.kind != RULE_UNKNOWN)) {
        rule = follow_frame_pointer(rule);
    }
    rule.entry |= rule.kind == RULE_SIGNAL;
    rule.area = area_of(rules, rule, pc, place.id);
    rule.hidden = libc_is_runtime(pc & ~RULE_EXACT, place.start, place.end) != 0;
    rule.own = place.own != 0;
    rule.plain = leads_out(rule) && !rule.hidden && !rule.entry && !lies_in(&place, rules->loader);
    rule.loader |= lies_in(&place, rules->loader);
    /* Go's runtime knows the frames of its code by their return addresses, but for
     * runtime.asmcgocall's, while C has been called. */
    rule.unpatched |=
        !rule.plain && !(MACHINE_KNOWS_GO && rule.kind == RULE_GO && (pc & RULE_EXACT) == 0 &&
                         machine_read_way_back(pc, place.end, &way));
    if (place.is_known) {
        rule_keep(rules, pc, rule);
    }
    return rule;
}

COLD uint64_t rule_cache_fill(struct rules *rules, struct rule_cache *cache, size_t place,
                              uint64_t pc) {
    union rule_word rule = {rule_look_up(rules, pc)};
    if (rule.word == 0) {
        rule.rule = rule_compute(rules, pc); /* perhaps not to be kept */
        return rule.word;
    }
    cache->place[place].pc = 0; /* a handler may leave by longjmp: what counts is whole */
    SIGNAL_FENCE();
    cache->place[place].rule = rule.word;
    SIGNAL_FENCE();
    cache->place[place].pc = pc;
    return rule.word;
}

/* Rules carry their area, so plug-ins loaded again and again use numbers up: start anew. */
static void renew(struct rules *rules) {
    struct rule_table *old = rules->table;
    struct rule_table *table = new_world();
    if (table != NULL) {
        rules->count = 0;
        rules->numbers = 1;
        memset(rules->number_hint, 0, sizeof rules->number_hint);
        STORE_RELEASE(&rules->table, table);
        sys_discard(old->numbered, RULE_NUMBERS * sizeof(uint64_t));
        discard(old);
    }
}

void rule_forget(struct rules *rules, uintptr_t start, uintptr_t end) {
    struct rule_table *table;
    int is_mine;
    __atomic_fetch_add(&rules->generation, 1, __ATOMIC_SEQ_CST);
    for (size_t i = 0; i < RULE_FUNCTIONS; i++) {
        STORE_RELAXED(&rules->function[i], 0);
    }
    is_mine = sys_take(&rules->lock);
    table = rules->table;
    for (size_t i = 0; table != NULL && i <= table->mask; i++) {
        uint64_t key = rule_place_key(LOAD_RELAXED(&table->place[i]));
        uintptr_t pc = key >> 1;
        if (key != 0 && pc >= start && pc <= end) {
            STORE_RELAXED(&table->place[i], key); /* RULE_NONE: computed anew when seen */
        }
    }
    if (table != NULL && is_mine && rules->numbers > RULE_NUMBERS / 2) {
        renew(rules);
    }
    if (is_mine) {
        trylock_release(&rules->lock);
    }
    /* Again: who began to walk meanwhile may have used what was on its way out. */
    __atomic_fetch_add(&rules->generation, 1, __ATOMIC_SEQ_CST);
}
