/* SPDX-License-Identifier: MIT */
/*
 * allocators.h: functions of the program that allocate. Those that the user has named (--alloc,
 * MEMTRACE_ALLOC) are led to us: their first instructions are replaced by a jump. Others were built
 * by a compiler pass to report by themselves (memtrace/named.h).
 */
#ifndef RUNTIME_FOLLOW_ALLOCATORS_H
#define RUNTIME_FOLLOW_ALLOCATORS_H

#include <stdint.h>

/* Leads what the settings name, in all objects that are loaded by now, to us; again: what has come
 * since. Does nothing where nothing is named. From outside of events. may_run: whether another
 * thread may run the code at this address, which is left alone then; not asked while there is no
 * other thread, and NULL: any may. */
void allocators_lead(int (*may_run)(uintptr_t address));

/* --- where we are attached: the command plans, and writes the jumps --------------------------- */

/* Where functions are named: makes room for a plan, and says where (struct memtrace_led). */
void allocators_expect(void);
/* Makes ready what the plan says that lies there. 0, or -1: there is none, or no room for it. */
int allocators_follow(void);
/* Whether this function leads to us, or may yet, since no plan has come. */
int allocators_may_lead_from(uintptr_t function);
/* The runtime has left: nothing is to be led to it. */
void allocators_forget(void);

/* ---------------------------------------------------------------------------------------------- */

/* Whether the settings name any. */
int allocators_are_named(void);

/* What the header's flags say of those that are led, and of those that report. */
uint32_t allocators_flags(void);

/* How many functions were led to us. */
uint32_t allocators_count(void);

/* The function at this address reports by itself: what is led to us of it has nothing to say. */
void allocators_leave_out(uintptr_t function);

/* The region is a new one, with names of pools of its own. */
void allocators_name_pools(void);

/* --- allocator_calls.c: the same of those that report. For allocators.c -------------------------
 */

uint32_t allocator_calls_flags(void);
void allocator_calls_forget_pools(void);

#endif
