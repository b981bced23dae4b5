/* SPDX-License-Identifier: MIT */
/*
 * cull.h: leaves out of a recording what is freed soon after it was allocated, both ends, and keeps
 * its totals.
 *
 * Blocks that realloc made of each other are one chain: it is left out or kept as a whole, by the
 * time from its first allocation to its last free.
 *
 * Called by collect/recordevents, from one thread; what holds for blocks that are left out later
 * too, by collect/transform/strip. Before events are written all that lies in the
 * buffers is shown to cull_note(), so that both ends of a chain are known when the turn of any of
 * its events comes: those of other threads may be written earlier or much later.
 */
#ifndef COLLECT_CULL_H
#define COLLECT_CULL_H

#include "analyze/base/numbermap.h"
#include "analyze/read/event.h"
#include "collect/recordfile.h"

/* A map from blocks to numbers, open addressing. */
struct cull_map {
    struct cull_entry *entries; /* key 0: empty */
    size_t count;
    size_t capacity; /* a power of two, or 0 */
};

/* What is left out, summed up by context and thread. */
struct cull_totals {
    struct memtrace_culled *items;
    size_t count, room;
    struct numbermap places; /* by context and thread: its place in items, plus one */
};

/* The one of a context and thread, a new one where there is none. NULL: out of memory. */
struct memtrace_culled *cull_total(struct cull_totals *totals, uint32_t context, uint32_t thread);
void cull_free_totals(struct cull_totals *totals);

/* What becomes of an allocation, or of a reallocation, where these of its blocks are left out (old:
 * also if it has none). A reallocation of which one block goes is the other one's birth or death.
 * Whether it is written, perhaps as another event. */
bool cull_alloc(struct event *event, bool old_goes, bool block_goes);

struct cull {
    uint64_t below_ns;         /* 0: nothing is left out */
    struct cull_map noted;     /* births and ends that lie in the buffers */
    struct cull_map culled;    /* one end was left out, the turn of the other has not come */
    struct cull_totals totals; /* not written yet */
};

void cull_open(struct cull *cull, uint64_t below_ns);
void cull_close(struct cull *cull);

/* Forgets what was noted: the buffers will be shown again. */
void cull_begin(struct cull *cull);
/* 0 or -1 (out of memory). */
int cull_note(struct cull *cull, const struct event *event);
/* All is noted: finds the chains that are short. */
void cull_judge(struct cull *cull);

/* Whether the event is written, perhaps as another (cull_alloc()): the buffers may be needed in the
 * middle of a chain. 1, 0: left out, -1: out of memory. */
int cull_decide(struct cull *cull, struct event *event);

/* Writes the totals since the last call. 0 or -1. */
int cull_write(struct cull *cull, struct recordfile *file, uint64_t time_ns, struct error *error);

#endif
