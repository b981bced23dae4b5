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
/* How many there are. */
size_t mapping_count(void);
/* All that there are; as far as nobody was just changing them, by a child's first thread. */
void mapping_visit(void (*visit)(void *argument, struct interval *item), void *argument);
void mapping_visit_in_child(void (*visit)(void *argument, struct interval *item), void *argument);

#endif
