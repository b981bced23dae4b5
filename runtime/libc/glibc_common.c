/* SPDX-License-Identifier: MIT */
/*
 * glibc_common.c: what is glibc's, shared or static. See libc.h.
 *
 * Nearly all of it has unwind tables, which say where paths end and how handlers return; on some
 * machines only what exceptions may pass through has any.
 */
#include "runtime/libc/libc.h"

int libc_describes_signals(void) {
    return 1;
}

int libc_may_keep_frame_pointers(uintptr_t pc) {
    (void)pc;
    return 1;
}
