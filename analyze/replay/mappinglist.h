/* SPDX-License-Identifier: MIT */
/*
 * mappinglist.h: the mappings (mmap, mremap, brk) that a program has at a moment of its replay, and
 * the rules by which its calls change them. Disjoint address ranges in a sorted array: programs
 * have few and change them rarely. What is unmapped in pieces ends in pieces.
 *
 * Called by replay/pass, window/index and query/mappingstable. Belongs to the job that it was begun
 * in. Start from {0}.
 */
#ifndef ANALYZE_REPLAY_MAPPINGLIST_H
#define ANALYZE_REPLAY_MAPPINGLIST_H

#include "analyze/replay/timeorder.h"

/* [start, end) is of whole pages. */
struct mapping {
    uint64_t start;
    uint64_t end;
    uint64_t born_ns;
    uint64_t id; /* the same for all pieces of a mapping, from 1 on in their order */
    uint32_t context;
    uint32_t thread;   /* that made it */
    uint8_t operation; /* enum memtrace_map_operation that made it */
    uint8_t protection;
    uint8_t flags;
    bool is_rest; /* what lies right of a hole: the mapping's end is counted with its left part */
};

struct mappinglist {
    struct mapping *items;
    size_t count;
    size_t room;
    uint64_t made; /* how many ever */
};

/* Who looks on. */
struct mappinglist_visitor {
    /* A new mapping. false: it is not one, and is not kept. NULL: all are. */
    bool (*made)(void *context, struct mapping *mapping);
    /* A piece ended with this event; is_last: with it the whole mapping is gone. What is not 0 ends
     * the event with that value. */
    int (*ended)(void *context, const struct mapping *piece, const struct timeorder_event *by,
                 bool is_last);
    void *context;
};

/* What an event of kind EVENT_MAP changes. 0, or what ended() returned. */
int mappinglist_take(struct mappinglist *mappings, const struct timeorder_event *event,
                     const struct mappinglist_visitor *visitor);

/* Puts in one that is known from elsewhere. */
void mappinglist_add(struct mappinglist *mappings, const struct mapping *mapping);

/* The first piece of which something lies in [start, end); NULL: there is none. */
const struct mapping *mappinglist_find(const struct mappinglist *mappings, uint64_t start,
                                       uint64_t end);

/* When a piece ended by this event did: not before it began. */
static inline uint64_t mappinglist_end_ns(const struct mapping *piece,
                                          const struct timeorder_event *by) {
    return by->event.time_ns > piece->born_ns ? by->event.time_ns : piece->born_ns;
}

#endif
