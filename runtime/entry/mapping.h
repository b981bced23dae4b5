/* SPDX-License-Identifier: MIT */
/* mapping.h: what a forked child needs of its inherited mappings, and a recording of those that are
 * there when it begins. */
#ifndef RUNTIME_ENTRY_MAPPING_H
#define RUNTIME_ENTRY_MAPPING_H

#include "runtime/heap/interval.h"
#include "runtime/record/recorder.h"

/* As a recording has it that begins while it is there. */
struct recorder_map mapping_record(const struct interval *item);

/* `inside`: the forking thread may be changing the mappings itself, and will go on. */
void mapping_init_child(int inside);
void mapping_forget(void); /* their memory was given up */
/* Those that are not counted yet, which they are from here on. */
void mapping_inherit(void (*visit)(void *argument, const struct interval *item), void *argument);
/* All that there are. */
void mapping_visit(void (*visit)(void *argument, const struct interval *item), void *argument);

#endif
