/* SPDX-License-Identifier: MIT */
/*
 * glibc_common.c: what is glibc's, shared or static. See libc.h.
 *
 * All of it has unwind tables, which say where paths end and how handlers return.
 */
#include "runtime/libc/libc.h"

int libc_describes_signals(void) {
    return 1;
}

int libc_is_outermost(uintptr_t pc) {
    (void)pc;
    return 0;
}

void libc_note_outermost(const void *pc) {
    (void)pc;
}

int libc_may_keep_frame_pointers(uintptr_t pc) {
    (void)pc;
    return 1;
}
