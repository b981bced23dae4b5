/* SPDX-License-Identifier: MIT */
/* zero.h: MEMTRACE_ZERO=1: what is allocated is zero, so that a program that reads what it never
 * wrote does the same each time. */
#ifndef RUNTIME_ENTRY_ZERO_H
#define RUNTIME_ENTRY_ZERO_H

/* From here on. What the other functions of this runtime call costs nothing more without it. */
void zero_start(void);

#endif
