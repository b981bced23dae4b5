/* SPDX-License-Identifier: MIT */
/*
 * profilewrite.h: writes a profile (memtrace/format.h): the header, then segments.
 *
 * Called by collect/transform/mergeprofiles. One thread. Whether all could be written is known at
 * the end.
 */
#ifndef COLLECT_PROFILEWRITE_H
#define COLLECT_PROFILEWRITE_H

#include "analyze/read/error.h"
#include "memtrace/format.h"

#include <stdbool.h>
#include <stdio.h>

struct profilewrite {
    FILE *out;
    uint64_t at; /* bytes so far */
    bool failed;
};

/* Begins a file: room for its header. */
struct profilewrite profilewrite_begin(FILE *out);

/* Appends a segment. `items` are item_count of them: the first ones, which lie under the segment's
 * header, are not written. */
void profilewrite_segment(struct profilewrite *write, enum memtrace_segment_kind kind,
                          uint32_t owner, uint32_t index, const void *items, size_t item_size,
                          size_t item_count);

/* Appends an array by id, MEMTRACE_LEAF_ITEMS a segment; the last one is filled up with zeros. */
void profilewrite_leaves(struct profilewrite *write, enum memtrace_segment_kind kind,
                         uint32_t owner, const void *items, size_t item_size, size_t item_count);

/* Writes the header, whose fields of the format itself are filled in. 0 or -1. */
int profilewrite_end(struct profilewrite *write, struct memtrace_header *header,
                     struct error *error);

#endif
