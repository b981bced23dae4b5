/* SPDX-License-Identifier: MIT */
/*
 * framenames.h: the names of frames that a recording carries itself (MEMTRACE_BLOCK_NAMES), instead
 * of program files to find them in.
 *
 * Called by cli (source), which hands them to analyze/model/names. A value, read once; any thread.
 *
 * Invariants, whatever the file says: items are sorted by frame; those of one frame are in the
 * order of the file, innermost function first, and all from one block.
 */
#ifndef ANALYZE_READ_FRAMENAMES_H
#define ANALYZE_READ_FRAMENAMES_H

#include "analyze/base/job.h"
#include "analyze/read/recording.h"

struct framename {
    uint64_t frame;
    const char *function; /* NULL: unknown */
    const char *file;     /* NULL: unknown */
    uint32_t line;
    uint32_t column;
};

struct framenames {
    struct framename *items;
    size_t count;
    struct job_memory *memory; /* of them and their texts */
};

/* Those of all parts of a recording; none is not an error. Blocks that do not add up are left out.
 * 0, or -1: out of memory. */
int framenames_read(struct framenames *names, const struct recording *const *parts, size_t count,
                    struct error *error);
void framenames_free(struct framenames *names);

/* The names of a frame; NULL: it has none here. */
const struct framename *framenames_find(const struct framenames *names, uint64_t frame,
                                        size_t *count);

#endif
