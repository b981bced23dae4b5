/* SPDX-License-Identifier: MIT */
/*
 * holes.h: when a heap had most holes. One pass over the lives of a recording keeps, page by page,
 * how many bytes of it are in use.
 *
 * Called by ask/answer and heaphistory. Unused is what lies between blocks that live:
 * the rest of each page that some block touches, and empty pages between two such pages less than 1
 * MiB apart. A moment is one of the recorded times, after all that happened at it, with an
 * allocation as what happens next: holes that a program makes while it frees one thing after the
 * other, or at its end, keep nobody from anything. All heap blocks count, whatever is selected.
 * Memory grows with the MiB of address space that blocks touch: 1.1 KiB for each.
 */
#ifndef ANALYZE_BLOCKS_HOLES_H
#define ANALYZE_BLOCKS_HOLES_H

#include "analyze/base/numbermap.h"
#include "analyze/model/model.h"
#include "analyze/replay/lives.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"

#include <stdbool.h>

struct holes {
    uint64_t time_ns; /* of the moment with most unused bytes; the earliest of equals */
    uint64_t unused_bytes;
    uint64_t live_bytes; /* that blocks held then, with what they could use beyond */
};

/* Whether they are what is wrong with the program: as much lay unused as was in use, and that was
 * not little, nor beside what the program ever held. */
bool holes_are_trouble(const struct holes *holes, const struct model *model);

/* Looks from from_ns on. 0, or -1: out of memory, or cancelled (error says which). */
int holes_find(const struct model *whole, struct timeorder_parts parts, uint64_t from_ns,
               const struct replay_options *options, struct holes *holes, struct error *error);

/* ---- The same, and a look at some moments on the way ---- */

/* The heap before anything happens at a moment or behind it. */
struct holes_state;
struct holes holes_now(const struct holes_state *state);
uint64_t holes_pages(const struct holes_state *state); /* that some block touches */
/* Every page of which something is in use, in no order, and what is inside of blocks of more than
 * 1 MiB, in one piece: `used` bytes of [start, end). */
void holes_visit(const struct holes_state *state,
                 void (*visit)(void *context, uint64_t start, uint64_t end, uint64_t used),
                 void *context);

struct holes_watch {
    const uint64_t *times_ns; /* growing */
    size_t count;
    /* It may end its job; arrays that it lets grow have to be begun before. */
    void (*moment)(void *context, size_t which, const struct holes_state *state);
    void *context;
};
int holes_watch(const struct model *whole, struct timeorder_parts parts, uint64_t from_ns,
                const struct holes_watch *watch, const struct replay_options *options,
                struct holes *holes, struct error *error);

/*
 * ---- insides: ranges of pages that come and go, found by their start: what lies inside of large
 * blocks. Adding and removing take the same time however many there are. In a damaged file several
 * may begin at one address: the last one goes first. Of holes.c alone, and of its test. ----
 */

struct inside {
    uint64_t start, end; /* numbers of pages; end 0: the place is free */
    size_t below;        /* place + 1 of the one before with this start, or of the next free one */
};

/* All zero is empty; of the job in which the first one is added. */
struct insides {
    struct inside *items;
    size_t room;
    size_t used;               /* places, free ones too */
    size_t free;               /* place + 1; 0: none */
    struct numbermap by_start; /* place + 1 of the last one */
    uint64_t pages;            /* of all of them */
    uint64_t looks;            /* at places, ever: what the test counts */
};

/* start < end. */
void insides_add(struct insides *insides, uint64_t start, uint64_t end);
/* Nothing happens if none starts there. */
void insides_remove(struct insides *insides, uint64_t start);

#endif
