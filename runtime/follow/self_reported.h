/* SPDX-License-Identifier: MIT */
/*
 * self_reported.h: functions of the program that allocate, and that a compiler pass has made report
 * by themselves (memtrace/named.h). The calls themselves come from the program.
 */
#ifndef RUNTIME_FOLLOW_SELF_REPORTED_H
#define RUNTIME_FOLLOW_SELF_REPORTED_H

#include <stdint.h>

/* What the header's flags say of them. */
uint32_t self_reported_flags(void);

/* The region is a new one, with names of pools of its own. */
void self_reported_forget_pools(void);

#endif
