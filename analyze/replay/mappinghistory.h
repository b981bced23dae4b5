/* SPDX-License-Identifier: MIT */
/*
 * mappinghistory.h: the mappings of a process over all the moments at which the collector looked at
 * them (smaps.h), each with a number.
 *
 * A mapping is what has a name and lies where one of that name lay before: it may grow and shrink.
 * Numbers count from 1 on in the order in which mappings were first seen, by address; they do not
 * depend on how far is read. Called by report, web/server and ask.
 */
#ifndef ANALYZE_REPLAY_MAPPINGHISTORY_H
#define ANALYZE_REPLAY_MAPPINGHISTORY_H

#include "analyze/model/model.h"
#include "analyze/replay/mappinglist.h"
#include "analyze/replay/options.h"
#include "analyze/replay/smaps.h"

#include <stdbool.h>

/* there_from_ns <= first_ns <= last_ns < there_to_ns, least <= start, end <= most. */
struct mapping_seen {
    uint64_t id;
    uint64_t start, end;  /* as they were last */
    uint64_t least, most; /* as far as it ever reached */
    uint64_t resident_bytes, dirty_bytes, swap_bytes;
    uint64_t peak_resident_bytes;
    uint64_t first_ns, last_ns; /* when it was seen */
    uint64_t there_from_ns;     /* the moment before, which did not have it; 0: there is none */
    uint64_t there_to_ns;       /* the moment after; UINT64_MAX: there is none */
    uint32_t protection;
    uint32_t node; /* of the path that mapped it, for who finds that out; 0: not known */
    bool is_there; /* at the last moment */
    char *name;
    size_t samples; /* of all, in the order of time */
};

/* What one looked like at one moment. */
struct mapping_sample {
    uint64_t time_ns;
    uint64_t start;
    uint64_t resident_bytes, dirty_bytes, swap_bytes;
    uint32_t mapping; /* place in items */
};

struct mappinghistory {
    struct mapping_seen *items;
    size_t count, room;
    struct mapping_sample *samples; /* by time, then by start */
    size_t sample_count, sample_room;
    uint64_t last_ns; /* the last moment */
};

/* The moments before to_ns, in the present job. */
void mappinghistory_read(struct timeorder_parts parts, uint64_t to_ns,
                         struct mappinghistory *history);

/* Sets `node` of those that were there at the last moment: who made the first of these mappings
 * that lies in it. 0 or REPLAY_CANCELLED. */
int mappinghistory_name_callers(struct mappinghistory *history, const struct mappinglist *mappings,
                                const struct model *whole, const struct replay_options *options);

/* The mapping of this number; NULL: there is none. */
const struct mapping_seen *mappinghistory_find(const struct mappinghistory *history, uint64_t id);

/* "rw-p": PROT_*, and whether it is private or shared. */
const char *mapping_permissions(uint32_t protection);

#endif
