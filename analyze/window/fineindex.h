/* SPDX-License-Identifier: MIT */
/*
 * fineindex.h: the slices of an index (index.h) in pieces, so that a window of a large recording
 * is known without reading the millions of events of the slices that it cuts: it reads the pieces
 * that it cuts once more, and adds up their neighbours. A piece holds its sums, where its events
 * begin, and the blocks that end in it and began before, which nobody has to look for then.
 *
 * Called by analyze/window/view, which uses one that is there, and by web/server, which has one
 * made in the background. It is kept in the cache folder alone, one file for each state of a
 * recording, and read from there: only its directory is in memory. Whatever is wrong with it, the
 * slices are cut without. Any thread.
 *
 * A file: of each piece its sums, then its beginning; the directory; its sizes. All but the sizes
 * are frames of zstd with checksums.
 */
#ifndef ANALYZE_WINDOW_FINEINDEX_H
#define ANALYZE_WINDOW_FINEINDEX_H

#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/window/index.h"

enum { FINEINDEX_EVENTS = 1 << 17 }; /* of a piece, at least */

/* A frame of zstd and what is in it; 0: there is none. */
struct fineindex_bytes {
    uint32_t packed, whole;
};

struct fineindex_piece {
    uint64_t start_ns;   /* as of index_entry */
    uint32_t first_tick; /* as of slice */
    uint32_t last_tick;
    uint64_t events;
    int64_t change;
    uint64_t offset;             /* of its bytes: sums, then beginning */
    struct fineindex_bytes sums; /* none: it is a whole slice of the index */
    struct fineindex_bytes beginning;
};

/* A block that began before a slice or piece and ends in it. */
struct fineindex_block {
    struct event_block name;
    struct pairing_block block;
    uint64_t born_ns;
    bool is_known; /* else all but the name must be looked for */
};

/* By thread and number. */
static inline int fineindex_compare(struct event_block left, struct event_block right) {
    if (left.thread != right.thread) {
        return left.thread < right.thread ? -1 : 1;
    }
    return (left.number > right.number) - (left.number < right.number);
}

/* Of struct fineindex_block, for qsort(). */
int fineindex_by_name(const void *left, const void *right);

struct fineindex;

/* The one in the cache; NULL: there is none. The model's. */
const struct fineindex *fineindex_of(const struct model *whole, struct timeorder_parts parts);
/* Has one made if there is none, or a damaged one, and it is worth it: a pass. Whether there is one
 * then. options may be NULL. */
bool fineindex_prepare(const struct model *whole, struct timeorder_parts parts,
                       const struct replay_options *options);

/* The pieces of slice `at` of the index. Returns their number; 0: it has none. */
size_t fineindex_pieces(const struct fineindex *fine, size_t at,
                        const struct fineindex_piece **pieces);
/* What happened in it: sums are there. It is the present job's. false: damaged. */
bool fineindex_slice(const struct fineindex *fine, const struct fineindex_piece *piece,
                     struct slice *slice);
/* Where it begins, and what ends in it, by name; as above. */
bool fineindex_begin(const struct fineindex *fine, const struct fineindex_piece *piece,
                     struct index_entry *entry, struct fineindex_block **blocks, size_t *count);

#endif
