/* SPDX-License-Identifier: MIT */
/*
 * index.h: a recording in slices (slice.h), each with what it takes to read its events once more
 * without those before: so any window of the recording is a sum of slices, and of the events of the
 * few that it cuts (view.h).
 *
 * Called by analyze/model: replay makes it, a model owns it, view and cache read it.
 *
 * Edges are chosen before the replay: about INDEX_SLICES slices of about the same number of events,
 * each at least INDEX_EVENTS, at whole clock ticks. An index never takes more than INDEX_BYTES:
 * when it would, each two neighbours become one.
 */
#ifndef ANALYZE_WINDOW_INDEX_H
#define ANALYZE_WINDOW_INDEX_H

#include "analyze/read/cachefolder.h"
#include "analyze/replay/pass.h"
#include "analyze/replay/timeorder.h"

enum { INDEX_SLICES = 256, INDEX_EVENTS = 1 << 16, INDEX_BYTES = 64 << 20 };

struct index_entry {
    uint64_t start_ns;           /* the slice has the windows that begin from here on */
    struct varint_writer place;  /* timeorder_seek(); empty: the beginning */
    struct varint_writer state;  /* of the pass when the slice began: index_restore() */
    struct varint_writer waited; /* ends in it that came before their beginnings */
    struct slice slice;
};

struct index {
    struct index_entry *entries;
    size_t count;
    struct slice all; /* every slice, and what the events leave out; freed once it is kept */
    struct cachefolder_file file; /* not {0}: it owns all bytes of the entries */
};

/* The edges between slices of at least so many events, growing; the first slice begins at 0. The
 * caller frees them. NULL: out of memory. */
uint64_t *index_edges(struct timeorder_parts parts, uint64_t least_events, size_t *count);

/* The slice that begins now, in an index that has room for all. */
struct index_entry *index_begin(struct index *index, uint64_t start_ns, const struct pass *pass);
void index_note_waited(struct index_entry *entry, struct event_block name,
                       const struct pairing_end *end);
/* Makes it as small as INDEX_BYTES. 0, or -1: out of memory. */
int index_shrink(struct index *index);
void index_free(struct index *index); /* NULL is allowed */

/* Puts a pass that was just started into the state where the slice began. 0, or -1: out of memory
 * or damaged. */
int index_restore(const struct index_entry *entry, struct pass *pass);

#endif
