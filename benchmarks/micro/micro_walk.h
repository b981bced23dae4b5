/* SPDX-License-Identifier: MIT */
/* micro_walk.h: what a walk needs, for the benchmarks that walk their own stack. */
#ifndef MEMTRACE_MICRO_WALK_H
#define MEMTRACE_MICRO_WALK_H

#include "benchmarks/micro/micro.h"
#include "runtime/stack/walk.h"

/* The program's only ones. */
extern struct walk_world micro_world;
extern struct walker micro_walker;

/* Makes them ready for main()'s thread; exits when it cannot. Returns the end of its stack. */
uintptr_t micro_open_walk(char **argv);

/* In the place of malloc: its caller is where the walk begins. */
uint32_t micro_take_context(void);

#endif
