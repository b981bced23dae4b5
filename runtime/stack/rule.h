/* SPDX-License-Identifier: MIT */
/*
 * rule.h: compact unwind rules, one for each return address ever seen, computed once.
 *
 * A rule says how to step from a frame to its caller:
 *   cfa  = (register sp or fp) + cfa_offset
 *   slot = cfa - 8                        where the return address lies, if calls push it
 *   fp'  = *(cfa + fp_offset), or fp      the caller's frame pointer
 * and where the function keeps its frame word, if it has one. (ARM has two frame pointers: rules
 * tell where both are.)
 * Code has many return addresses but few different rules: the open-addressed table holds 8 bytes
 * for each address, between 3/8 and 3/4 full, with the number of its rule. Readers take no lock,
 * writers never wait (who does not get the lock computes the rule for itself).
 */
#ifndef RUNTIME_STACK_RULE_H
#define RUNTIME_STACK_RULE_H

#include "runtime/base/compiler.h"
#include "runtime/machine/machine.h"
#include "runtime/stack/context.h"
#include "runtime/stack/debug_frame.h"
#include "runtime/stack/go_table.h"
#include "runtime/stack/module.h"

enum rule_kind {
    RULE_NONE = 0, /* not known: compute */
    RULE_SP,
    RULE_FP,
    RULE_SLOW,    /* an expression: interpreted each time */
    RULE_SIGNAL,  /* the kernel's signal frame: registers lie in memory */
    RULE_END,     /* outermost frame */
    RULE_UNKNOWN, /* no unwind information */
    RULE_GO,      /* Go's code: by fp, also from stack to stack */
};

enum { RULE_WORD_BITS = 16 };

/* One word, so that it is published in one store. In this order reading the fields that each step
 * needs takes the fewest instructions: the area lies where the context tree has it. */
struct rule {
    /* From the CFA, in words; 0: unchanged. Where calls push nothing: of the return address, from
     * the register unless it is negative; fp lies below it, if it is saved. */
    int64_t fp_offset : 8;
    /* So many times 4 bytes below the CFA; 0: none. Of machines with two frame pointers, which have
     * no such words, what RULE_SAVED_ tells. */
    uint64_t frame_word : RULE_WORD_BITS;
    uint64_t kind : 3;
    /* RULE_SP that leads further out or RULE_FP, and none of hidden, entry, loader. */
    uint64_t plain : 1;
    /* Nothing may stand between it and its callee: exceptions may end here, or no plain rule leads
     * on, so that others may know the frame by its return address. */
    uint64_t unpatched : 1;
    /* Saves its caller's fp and does not need it for itself: RULE_SP. */
    uint64_t own_fp : 1;
    int64_t cfa_offset : 17;   /* in words: up to 512 KiB */
    uint64_t own : 1;          /* in the program's own code */
    uint64_t area : AREA_BITS; /* of the return address, or what of it is exact: context.h */
    uint64_t hidden : 1;       /* in the runtime itself: our pthread_create */
    uint64_t entry : 1; /* pc is where a function starts: it returns to it, but nobody called */
    /* In the dynamic loader, which lazy binding enters from any call. Where functions may sign
     * return addresses, also of those that do, or may do so (MACHINE_MAY_SIGN): a plain rule says
     * no more than that. No guard stands where such a function has saved its return address. */
    uint64_t loader : 1;
} FROM_LOWEST_BIT;
_Static_assert(sizeof(struct rule) == 8, "a rule is one word");

/* Loaded and stored in one piece. */
union rule_word {
    uint64_t word;
    struct rule rule;
} FROM_LOWEST_BIT;

/* Of a rule's word: frame_word, RULE_FP (with a plain rule), plain, unpatched and own_fp. */
enum {
    RULE_WORD_MASK = MACHINE_HAS_WORDS ? ((1 << RULE_WORD_BITS) - 1) << 8 : 0,
    RULE_BY_FP = 1 << 25,
    RULE_PLAIN = 1 << 27,
    RULE_UNPATCHED = 1 << 28,
    RULE_OWN_FP = 1 << 29
};
#define RULE_LOADER    (UINT64_C(1) << 63)
#define RULE_AREA_MASK ((uint64_t)(AREA_LIMIT - 1) << MEMTRACE_NODE_AREA_SHIFT)

INLINE int rule_is_in_loader(struct rule rule) {
    return rule.loader && !(MACHINE_MAY_SIGN && rule.plain);
}

/* Where the function keeps its frame word; 0: it has none. */
INLINE uint32_t rule_word(struct rule rule) {
    return MACHINE_HAS_WORDS ? (uint32_t)rule.frame_word : 0;
}

/* Of machines with two frame pointers, of which a function keeps one (RULE_FP): so many words below
 * the return address they are saved, 0: they are not; and whether it is the second one by which the
 * frame is found. */
enum {
    RULE_SAVED_FP = 15,
    RULE_SAVED_SECOND_SHIFT = 4,
    RULE_SAVED_BOTH = 0xff,
    RULE_BY_SECOND_FP = 1 << 8
};

/* Of a plain rule, where calls push nothing: what needs fp to find its frame has saved it. */
INLINE int rule_saves_fp(struct rule rule) {
    return rule.own_fp || rule.kind == RULE_FP;
}

/* A place: the key (below) and above it the rule's number; 0: empty. */
struct rule_table {
    size_t mask;        /* places - 1 */
    uint64_t *numbered; /* the different rules, each as a word; number 0 is RULE_NONE */
    uint64_t place[];
};

/* Of an address and whether it is exact; more are not needed where addresses are short. */
enum {
    RULE_KEY_BITS = MACHINE_ADDRESS_BITS < 47 ? 48 : MACHINE_ADDRESS_BITS + 1,
    RULE_NUMBERS = 1 << (64 - RULE_KEY_BITS)
};

/* Numbers by hash of their rules: where to look before looking through all. */
enum { RULE_HINTS = 1024 };

/* Where functions met lately keep their words, since looking for one takes reading the function. */
enum { RULE_FUNCTIONS = 512 };

struct rules {
    uint64_t function[RULE_FUNCTIONS]; /* start << RULE_WORD_BITS | frame_word; 0: empty */
    uint16_t number_hint[RULE_HINTS];
    struct rule_table *table; /* NULL: no memory; every rule is computed */
    size_t count;
    uint32_t numbers; /* given out */
    struct trylock lock;
    struct modules *modules;
    struct areas *areas;
    uintptr_t loader;     /* an address in the dynamic loader */
    int has_frame_words;  /* some code was built with a pass */
    int by_frame_pointer; /* MEMTRACE_UNWIND=fp: every function is said to keep one */
    uint32_t generation;  /* how often rules were forgotten */
    struct debug_frames debug_frames;
    struct go_tables go_tables;
};

void rule_init(struct rules *rules, struct modules *modules, struct areas *areas);
/* Forgets the rules for addresses in [start, end): the object is gone. */
void rule_forget(struct rules *rules, uintptr_t start, uintptr_t end);
struct rule rule_compute(struct rules *rules, uint64_t pc);
/* The row for `address`, which lies in this object, from whatever tables it has. 0, or -1: none;
 * where that is not for good, the place is not known any more. */
int rule_find_row(struct rules *rules, struct module_place *place, uintptr_t address,
                  struct cfi_row *row);

/* Bit 63 of a frame's pc: an interrupted instruction, not a return address (format.h). */
#define RULE_EXACT (UINT64_C(1) << 63)

INLINE size_t rule_hash(uint64_t pc) {
    return (size_t)((pc * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* Whether the address is exact moves to the lowest bit. */
INLINE uint64_t rule_key(uint64_t pc) {
    return pc << 1 | pc >> 63;
}

INLINE uint64_t rule_place_key(uint64_t place) {
    return place & ((UINT64_C(1) << RULE_KEY_BITS) - 1);
}

/* The rule of return address pc (RULE_EXACT: of the interrupted instruction pc), as a word; 0: it
 * is not in the table. */
INLINE uint64_t rule_look_up(const struct rules *rules, uint64_t pc) {
    /* Pairs with the release when a grown table is published. */
    const struct rule_table *table = LOAD_ACQUIRE(&rules->table);
    uint64_t key = rule_key(pc);
    if (UNLIKELY(table == NULL)) {
        return 0;
    }
    for (size_t i = rule_hash(key);; i++) {
        /* Pairs with insert(): the numbered rule is there first. */
        uint64_t place = LOAD_ACQUIRE(&table->place[i & table->mask]);
        if (rule_place_key(place) == key) {
            return LOAD_RELAXED(&table->numbered[place >> RULE_KEY_BITS]);
        }
        if (place == 0) {
            return 0;
        }
    }
}

INLINE struct rule rule_find(struct rules *rules, uint64_t pc) {
    union rule_word rule = {rule_look_up(rules, pc)};
    return LIKELY(rule.word != 0) ? rule.rule : rule_compute(rules, pc);
}

/* Rules that a thread used lately, in front of the table. To be emptied when rules were forgotten.
 */
enum { RULE_CACHE_BITS = 9 };

struct rule_cache {
    struct {
        uint64_t pc; /* 0: empty */
        uint64_t rule;
    } place[1 << RULE_CACHE_BITS];
};

/* The slow half of rule_cached(): fills the place, unless the table does not keep the rule. */
uint64_t rule_cache_fill(struct rules *rules, struct rule_cache *cache, size_t place, uint64_t pc);

/* As a word: what is handed on as a struct of bits is taken apart and put together again. */
INLINE size_t rule_cache_place(uint64_t pc) {
    return (uint32_t)(pc * UINT32_C(0x1e3779b1)) >> (32 - RULE_CACHE_BITS);
}

INLINE union rule_word rule_cached(struct rules *rules, struct rule_cache *cache, uint64_t pc) {
    size_t i = rule_cache_place(pc);
    return (union rule_word){LIKELY(cache->place[i].pc == pc)
                                 ? cache->place[i].rule
                                 : rule_cache_fill(rules, cache, i, pc)};
}

/* What a plain rule of a machine with two frame pointers says of them. */
INLINE uint32_t rule_saved_fp(struct rule rule) {
    return rule.frame_word & RULE_SAVED_FP;
}

INLINE uint32_t rule_saved_second(struct rule rule) {
    return rule.frame_word >> RULE_SAVED_SECOND_SHIFT & RULE_SAVED_FP;
}

/* The lowest word that the step reads lies so many below the return address. */
INLINE int64_t rule_lowest_saved(struct rule rule) {
    uint32_t first = rule_saved_fp(rule);
    uint32_t second = rule_saved_second(rule);
    if (!MACHINE_HAS_SECOND_FP) {
        return rule_saves_fp(rule);
    }
    return first > second ? first : second;
}

#endif
