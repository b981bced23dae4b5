/* SPDX-License-Identifier: MIT */
/*
 * insides.h: ranges of pages that come and go, found by their start: what lies inside of large
 * blocks while a recording is replayed. Adding and removing take the same time however many there
 * are. In a damaged file several may begin at one address: the last one goes first.
 *
 * Called by analyze/blocks/holes. Belongs to one thread.
 */
#ifndef ANALYZE_BLOCKS_INSIDES_H
#define ANALYZE_BLOCKS_INSIDES_H

#include "analyze/base/numbermap.h"

#include <stdbool.h>

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
