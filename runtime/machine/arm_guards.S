/* SPDX-License-Identifier: MIT */
/* arm_guards.S: no guards on this machine; this is what stands in their place, and no return
 * address leads to it. */
#include "runtime/machine/arm.h"

    .section .rodata
    .balign MACHINE_GUARD_CELL
    .globl  memtrace_guard
    .hidden memtrace_guard
memtrace_guard:
    .fill   MACHINE_GUARD_COUNT * MACHINE_GUARD_CELL, 1, 0
    .section .note.GNU-stack, "", %progbits
