/* SPDX-License-Identifier: MIT */
/*
 * uncounted.h: memory that went past the counters, because the program has a malloc that is not
 * ours. Then "lost 0" would not be true.
 *
 * Called by analyze/model/names, analyze/report, collect and cli. Any thread.
 */
#ifndef ANALYZE_MODEL_UNCOUNTED_H
#define ANALYZE_MODEL_UNCOUNTED_H

#include "analyze/model/model.h"

enum { UNCOUNTED_SIZE = 512 };

/* Whether what the program's own calls of malloc gave out is not counted: the numbers mean nothing.
 */
bool uncounted_is_all(const struct model *model);

/* What the header says, and what the program's file tells besides, if it is there. */
void uncounted_find(const struct memtrace_header *header, struct memtrace_malloc *found);

/* Writes one line that says whose malloc it is and what to do; "" where all is counted, as far as
 * can be told. Reads the program's file. Returns `line`. */
const char *uncounted_explain(const struct model *model, char line[UNCOUNTED_SIZE]);

#endif
