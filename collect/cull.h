/* SPDX-License-Identifier: MIT */
/*
 * cull.h: leaves out of a recording what is freed soon after it was allocated, both ends, and keeps
 * its totals.
 *
 * Blocks that realloc made of each other are one chain: it is left out or kept as a whole, by the
 * time from its first allocation to its last free.
 *
 * Called by collect/recordevents, from one thread. Before events are written all that lies in the
 * buffers is shown to cull_note(), so that both ends of a chain are known when the turn of any of
 * its events comes: those of other threads may be written earlier or much later.
 */
#ifndef COLLECT_CULL_H
#define COLLECT_CULL_H

#include "analyze/read/event.h"
#include "collect/recordfile.h"

/* A map from blocks to numbers, open addressing. */
struct cull_map {
    struct cull_entry *entries; /* key 0: empty */
    size_t count;
    size_t capacity; /* a power of two, or 0 */
};

struct cull {
    uint64_t below_ns;              /* 0: nothing is left out */
    struct cull_map noted;          /* births and ends that lie in the buffers */
    struct cull_map culled;         /* one end was left out, the turn of the other has not come */
    struct cull_map places;         /* of a context and thread in `totals` */
    struct memtrace_culled *totals; /* not written yet */
    size_t total_count, total_room;
};

void cull_open(struct cull *cull, uint64_t below_ns);
void cull_close(struct cull *cull);

/* Forgets what was noted: the buffers will be shown again. */
void cull_begin(struct cull *cull);
/* 0 or -1 (out of memory). */
int cull_note(struct cull *cull, const struct event *event);
/* All is noted: finds the chains that are short. */
void cull_judge(struct cull *cull);

/* Whether the event is written, perhaps as another: where the buffers were needed in the middle of
 * a chain, a realloc whose old block was left out is an allocation, one whose new block is, a free.
 * 1, 0: left out, -1: out of memory. */
int cull_decide(struct cull *cull, struct event *event);

/* Writes the totals since the last call. 0 or -1. */
int cull_write(struct cull *cull, struct recordfile *file, uint64_t time_ns, struct error *error);

#endif
