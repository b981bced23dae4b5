/* SPDX-License-Identifier: MIT */
/*
 * heaptracktext.h: the lines of a heaptrack data file (version 3, as heaptrack_interpret writes
 * them): what is told once (texts, places, call paths, sizes) is written when it is first needed.
 *
 * Used by analyze/export/heaptrack.c. Memory grows with contexts and distinct sizes, the latter up
 * to a bound.
 *
 * What heaptrack's readers call temporary: a line '-' directly behind the line '+' of the same size
 * and call path, or a '-' of number 0 behind another '-'. Number 0 is here a size of 0 bytes that
 * never begins, so that its end changes no sum but that: it stands in front of an end that would
 * count as temporary by chance, and behind one that counts as such but does not follow its
 * beginning (heaptrack.c tells why there are few); then the file's first call path gets that one.
 */
#ifndef ANALYZE_EXPORT_HEAPTRACKTEXT_H
#define ANALYZE_EXPORT_HEAPTRACKTEXT_H

#include "analyze/export/export.h"
#include "analyze/export/numbering.h"
#include "analyze/model/model.h"

struct heaptracktext {
    FILE *out;
    const struct model *model;
    const struct names *names;
    struct numbering texts;
    struct numbering places; /* by frame */
    struct numbering infos;  /* by size and call path; number 0 is the block of no bytes */
    uint64_t *traces;        /* by node: number of its call path; 0: none yet */
    uint64_t trace_count;
    uint64_t last; /* number of the info that was allocated last; 0: a free came since */
    uint64_t time_ms;
    size_t point; /* of the model's timeline: the next one to write */
    bool out_of_memory;
};

/* Writes what stands first: version, command, page size. 0, or -1: out of memory. */
int heaptracktext_start(struct heaptracktext *text, FILE *out, const struct export *export);
void heaptracktext_end(struct heaptracktext *text);

/* The time of what follows, and the resident memory that was measured up to then. */
void heaptracktext_time(struct heaptracktext *text, uint64_t time_ns);
void heaptracktext_alloc(struct heaptracktext *text, uint32_t context, uint64_t size);
void heaptracktext_free(struct heaptracktext *text, uint32_t context, uint64_t size,
                        bool temporary);

#endif
