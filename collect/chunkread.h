/* SPDX-License-Identifier: MIT */
/*
 * chunkread.h: from the words of a chunk (memtrace/events.h) to events.
 *
 * Called by collect/drain. A reader belongs to one thread. The words may be damaged: nothing past
 * `end` is read, whatever they say.
 */
#ifndef COLLECT_CHUNKREAD_H
#define COLLECT_CHUNKREAD_H

#include "analyze/read/event.h"

struct chunkread {
    const uint64_t *word;
    uint32_t at;  /* of the next event */
    uint32_t end; /* behind the last published word */
    uint32_t thread;
    uint64_t number; /* of the next allocation */
    uint64_t time_ns;
};

/* From the chunk's first word on; `used` is what was loaded of chunk->used. */
void chunkread_start(struct chunkread *read, const struct memtrace_chunk *chunk, uint32_t used);

/* Fills *event and steps behind it; its text points into the chunk. Words that are no event (times,
 * numbers) are stepped over. 1; 0: at the end; -1: what stands at read->at is damaged. */
int chunkread_next(struct chunkread *read, struct event *event);

/* Steps over the events before `place`. 0, or -1: damaged. */
int chunkread_skip(struct chunkread *read, uint32_t place);

#endif
