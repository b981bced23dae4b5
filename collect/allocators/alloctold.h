/* SPDX-License-Identifier: MIT */
/*
 * alloctold.h: what was said of --alloc already in a run of `memtrace run`: each process of it
 * looks for the functions, and says what it does not find, so that a build would say it a thousand
 * times. The lines are kept beside the regions until the run ends.
 *
 * Called by cli/allocators.c and cli/run.c. Any number of processes at one time.
 */
#ifndef COLLECT_ALLOCATORS_ALLOCTOLD_H
#define COLLECT_ALLOCATORS_ALLOCTOLD_H

#include <stdbool.h>
#include <stdint.h>

/* Whether nobody has said this in the run to which the region belongs; from here on somebody has. A
 * specification that is nowhere counts as one thing, in whichever program. Where it cannot be known
 * it is news. */
bool alloctold_is_news(const char *region, const char *line);

/* The run is over. */
void alloctold_forget(uint64_t run);

#endif
