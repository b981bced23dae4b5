/* SPDX-License-Identifier: MIT */
/*
 * smaps.h: the mappings of the process as the collector saw them (/proc/PID/smaps) at some moments.
 *
 * Called by analyze/report, analyze/query and web/server, in a job, whose memory they are.
 */
#ifndef ANALYZE_REPLAY_SMAPS_H
#define ANALYZE_REPLAY_SMAPS_H

#include "analyze/replay/timeorder.h"

struct smaps_mapping {
    uint64_t start, end;
    uint64_t offset; /* in the file that is mapped */
    uint64_t resident_bytes;
    uint64_t dirty_bytes;
    uint64_t swap_bytes;
    uint32_t protection; /* PROT_*, bit 3: shared */
    const char *name;    /* "" where it has none */
};

struct smaps {
    uint64_t time_ns;
    struct smaps_mapping *mappings; /* by address; NULL: the file has none of that time */
    size_t count;
    char *names;
};

/* Those of a block of kind MEMTRACE_BLOCK_SMAPS; none where it cannot be read. */
void smaps_load(const struct recording *recording, size_t block, struct smaps *smaps);

/* The last ones noted no later than time_ns; where there are only later ones, the first of those.
 */
void smaps_at(struct timeorder_parts parts, uint64_t time_ns, struct smaps *smaps);

/* All that the recording has, by time; what visit() gets is there for the call. false: no more. */
void smaps_visit(struct timeorder_parts parts,
                 bool (*visit)(void *context, const struct smaps *smaps), void *context);

/* The mapping that holds this address, or NULL. */
const struct smaps_mapping *smaps_find(const struct smaps *smaps, uint64_t address);

#endif
