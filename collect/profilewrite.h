/* SPDX-License-Identifier: MIT */
/*
 * profilewrite.h: writes a profile (memtrace/format.h): the header, then segments, compressed.
 *
 * Called by collect/transform/mergeprofiles. One thread. The profile grows in memory and is
 * compressed and written at the end; whether all of that worked is known then.
 */
#ifndef COLLECT_PROFILEWRITE_H
#define COLLECT_PROFILEWRITE_H

#include "analyze/base/error.h"
#include "memtrace/format.h"

#include <stdbool.h>
#include <stdio.h>

struct profilewrite {
    unsigned char *bytes; /* of the profile, uncompressed */
    size_t size;
    size_t room;
    bool out_of_memory;
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
 * in. 0 or -1. */
int profilewrite_end(struct profilewrite *write, struct memtrace_header *header, FILE *out,
                     struct error *error);

/* It is not to be written. */
void profilewrite_drop(struct profilewrite *write);

#endif
