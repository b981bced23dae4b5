/* SPDX-License-Identifier: MIT */
/*
 * allocnest.h: functions of a ready-made set that lead to each other. Which ones do is the
 * compiler's choice: what one has made part of its caller the other one has left a call. A block
 * counts once all the same, with the function that the program calls where that can be had.
 *
 * Called by allocators.c. Belongs to one thread.
 */
#ifndef COLLECT_ALLOCATORS_ALLOCNEST_H
#define COLLECT_ALLOCATORS_ALLOCNEST_H

#include "collect/allocators/allocplan.h"

/* Where one that allocates ends in a jump to another one, that one's own calls alone count (it is
 * guarded). One that calls another one is left out: its blocks are the other one's. */
void allocnest_resolve(struct allocplan *plan);

#endif
