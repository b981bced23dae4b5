/* SPDX-License-Identifier: MIT */
/* guard.c: which guard stands for which return address. See guard.h. */
#include "runtime/stack/guard.h"

enum { PROBES = 8 };

MACHINE_GUARD_TABLE uintptr_t guard_table[MACHINE_GUARD_COUNT];

/* A place once taken is never given back, so that looking and taking need no lock. */
uintptr_t guard_for(uintptr_t pc) {
    size_t first = (pc * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
    for (size_t probe = 0; probe < PROBES; probe++) {
        size_t at = (first + probe) % MACHINE_GUARD_COUNT;
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
