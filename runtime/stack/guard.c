/* SPDX-License-Identifier: MIT */
/* guard.c: which guard stands for which return address. See guard.h. */
#include "runtime/stack/guard.h"

#include "memtrace/format.h"

enum { PROBES = 8, NEAR_PROBES = 4, NEAR_GUARDS = MEMTRACE_PAGE_SIZE / sizeof(uintptr_t) };

MACHINE_GUARD_TABLE __attribute__((aligned(MEMTRACE_PAGE_SIZE)))
uintptr_t guard_table[MACHINE_GUARD_COUNT];

/* The guard for pc, which stands for it or is free. 0: none of these. A place once taken is never
 * given back, so that looking and taking need no lock. */
INLINE uintptr_t take_guard(uintptr_t pc, size_t first, size_t probes, size_t count) {
    for (size_t probe = 0; probe < probes; probe++) {
        size_t at = (first + probe) % count;
        uintptr_t known = LOAD_RELAXED(&guard_table[at]);
        if (known == 0 && __atomic_compare_exchange_n(&guard_table[at], &known, pc, 0,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            known = pc;
        }
        if (known == pc) {
            return (uintptr_t)memtrace_guard + at * MACHINE_GUARD_CELL;
        }
    }
    return 0;
}

/* The first few hundred are beside each other: most programs need no more, and what a forked child
 * writes and runs of them is a page or two. */
uintptr_t guard_for(uintptr_t pc) {
    size_t first = (pc * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
    uintptr_t guard =
        MACHINE_GUARD_COUNT > NEAR_GUARDS ? take_guard(pc, first, NEAR_PROBES, NEAR_GUARDS) : 0;
    return guard != 0 ? guard : take_guard(pc, first, PROBES, MACHINE_GUARD_COUNT);
}
