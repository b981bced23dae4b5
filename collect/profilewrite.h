/* SPDX-License-Identifier: MIT */
/*
 * profilewrite.h: writes a profile (memtrace/format.h): the header, then segments, compressed.
 *
 * Called by collect/mergeprofiles. One thread, in a job. The profile grows in memory, which is the
 * job's, and is compressed and written at the end.
 */
#ifndef COLLECT_PROFILEWRITE_H
#define COLLECT_PROFILEWRITE_H

#include "memtrace/format.h"

#include <stddef.h>
#include <stdio.h>

struct profilewrite {
    unsigned char *bytes; /* of the profile, uncompressed */
    size_t size;
    size_t room;
};

/* Begins a profile: room for its header. */
struct profilewrite profilewrite_begin(void);

/* Appends a segment. `items` are item_count of them: the first ones, which lie under the segment's
 * header, are not written. */
void profilewrite_segment(struct profilewrite *write, enum memtrace_segment_kind kind,
                          uint32_t owner, uint32_t index, const void *items, size_t item_size,
                          size_t item_count);

/* Appends an array by id, MEMTRACE_LEAF_ITEMS a segment; the last one is filled up with zeros. */
void profilewrite_leaves(struct profilewrite *write, enum memtrace_segment_kind kind,
                         uint32_t owner, const void *items, size_t item_size, size_t item_count);

/* Writes it all to the file, which is empty. The header's fields of the format itself are filled
 * in. */
void profilewrite_end(struct profilewrite *write, struct memtrace_header *header, FILE *out);

#endif
