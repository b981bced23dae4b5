/* SPDX-License-Identifier: MIT */
/*
 * mergeprofiles.h: one profile of several processes': sums of each call path, threads side by side.
 *
 * Called by cli/merge, ask and collect/runfolder. One thread; one profile at a time is in memory.
 * It is a job of its own.
 *
 * The maxima are added up, too: what all would hold if each were at its maximum at the same time.
 * Forked children that stayed light stay children of the new profile.
 */
#ifndef COLLECT_MERGEPROFILES_H
#define COLLECT_MERGEPROFILES_H

#include "analyze/model/model.h"
#include "memtrace/format.h"

#include <stddef.h>
#include <stdio.h>

/* ---- A profile ---- */

/* Its header, then segments (memtrace/format.h): it grows in memory, which is a job's, and is
 * compressed and written at the end. */
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

/* ---- One of several ---- */

/* Makes the model of a recording, which is freed here. */
typedef struct model *model_loader(void *context, const char *path, struct error *error);

/* Writes the file, in the order of the processes' starts, whatever that of the paths. With `load`
 * some files may be recordings, and what light children did counts as what their parents did: but
 * for the maxima, of which nobody knows the call paths. NULL: all are profiles. 0 or -1. */
int merge_profiles(char *const *paths, size_t count, model_loader *load, void *context, FILE *out,
                   struct error *error);

#endif
