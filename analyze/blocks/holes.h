/* SPDX-License-Identifier: MIT */
/*
 * holes.h: when a heap had most holes. One pass over the lives of a recording keeps, page by page,
 * how many bytes of it are in use.
 *
 * Called by analyze/ask/reportmaking. Unused is what lies between blocks that live: the rest of
 * each page that some block touches, and empty pages between two such pages less than 1 MiB apart.
 * A moment is one of the recorded times, after all that happened at it, with an allocation as what
 * happens next: holes that a program makes while it frees one thing after the other, or at its end,
 * keep nobody from anything. All heap blocks count, whatever is selected. Memory grows with the MiB
 * of address space that blocks touch: 1.1 KiB for each.
 */
#ifndef ANALYZE_BLOCKS_HOLES_H
#define ANALYZE_BLOCKS_HOLES_H

#include "analyze/model/model.h"
#include "analyze/replay/lives.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"

struct holes {
    uint64_t time_ns; /* of the moment with most unused bytes; the earliest of equals */
    uint64_t unused_bytes;
    uint64_t live_bytes; /* that blocks held then, with what they could use beyond */
};

/* Looks from from_ns on. 0, or -1: out of memory, or cancelled (error says which). */
int holes_find(const struct model *whole, struct timeorder_parts parts, uint64_t from_ns,
               const struct replay_options *options, struct holes *holes, struct error *error);

#endif
