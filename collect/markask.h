/* SPDX-License-Identifier: MIT */
/*
 * markask.h: marks in the recording of a running program that somebody else than the program asks
 * for: through a few places in its region (memtrace/events.h), which its collector looks at.
 *
 * Called by collect/programask. What the collector does: marktaker.h.
 */
#ifndef COLLECT_MARKASK_H
#define COLLECT_MARKASK_H

#include "analyze/base/error.h"
#include "analyze/read/region.h"
#include "memtrace/events.h"

#include <stdbool.h>

struct markask {
    struct memtrace_asked_marks *marks; /* in the region; NULL: not asked yet */
    uint64_t number;
};

/* The text has fewer than MEMTRACE_ASKED_MARK_BYTES. 1; 0: not yet, there is no place for it; -1:
 * error. Does not wait. */
int markask_begin(struct markask *ask, const struct region *region, const char *text,
                  struct error *error);
/* Whether it is in the recording. */
bool markask_is_taken(const struct markask *ask);
void markask_end(struct markask *ask);

#endif
