/* SPDX-License-Identifier: MIT */
/*
 * noguards.S: what stands in the guards' place on a machine that has none, and for other C libraries
 * than glibc as a shared one. No return address leads to it.
 */
#include "runtime/machine/linked.h"

    .section .rodata
    .balign MACHINE_GUARD_CELL
    .globl  memtrace_guard
    .hidden memtrace_guard
memtrace_guard:
    .fill   MACHINE_GUARD_COUNT * MACHINE_GUARD_CELL, 1, 0
    .section .note.GNU-stack, ""
