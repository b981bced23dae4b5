/* SPDX-License-Identifier: MIT */
/*
 * outermost.c: where paths end in a C library, or in parts of one, that has no unwind tables: at
 * what calls a thread's first function, or main, which is told from the return address with which
 * these are entered; and in the program's own first code. See libc.h.
 */
#include "runtime/base/compiler.h"
#include "runtime/libc/libc.h"
#include "runtime/machine/machine.h"

#include <sys/auxv.h>

enum { START_BYTES = 64 };
enum { OUTERMOST = 4 }; /* main, pthread_create's function; each has one caller */

static uintptr_t outermost[OUTERMOST];

int libc_is_outermost(uintptr_t pc) {
    for (int i = 0; i < OUTERMOST; i++) {
        if (LOAD_RELAXED(&outermost[i]) == pc) {
            return 1;
        }
    }
    return pc - machine_plain(getauxval(AT_ENTRY)) < START_BYTES;
}

void libc_note_outermost(const void *address) {
    uintptr_t pc = machine_plain((uintptr_t)address);
    for (int i = 0; i < OUTERMOST; i++) {
        uintptr_t free_place = 0;
        if (LOAD_RELAXED(&outermost[i]) == pc ||
            __atomic_compare_exchange_n(&outermost[i], &free_place, pc, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            return;
        }
    }
}
