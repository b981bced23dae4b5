/* SPDX-License-Identifier: MIT */
/*
 * index.h: what going through a recording's events gave: the recording in slices (slice.h), each
 * with what it takes to read its events once more without those before, so that any window of the
 * recording is a sum of slices, and of the events of the few that it cuts (view.h); and the few
 * facts that are not sums. With the recording's tables it is the model (wholemodel.h).
 *
 * Called by analyze/window: wholereplay makes it, a model has it, view reads it; as bytes it lies
 * in the recording itself (a block of kind MEMTRACE_BLOCK_SLICES) or in the cache.
 *
 * Edges are chosen before the replay: about INDEX_SLICES slices of about the same number of events,
 * each at least INDEX_EVENTS, at whole clock ticks. An index never has more of them, and never
 * takes more than INDEX_BYTES: when it would, each two neighbours become one.
 */
#ifndef ANALYZE_WINDOW_INDEX_H
#define ANALYZE_WINDOW_INDEX_H

#include "analyze/profile/timepoints.h"
#include "analyze/replay/marks.h"
#include "analyze/replay/pass.h"
#include "analyze/replay/timeorder.h"
#include "analyze/window/fields.h"

#include <stdatomic.h>

enum { INDEX_SLICES = 1024, INDEX_EVENTS = 1 << 16, INDEX_BYTES = 48 << 20 };

struct index_entry {
    uint64_t start_ns;           /* the slice has the windows that begin from here on */
    struct varint_writer place;  /* timeorder_seek(); empty: the beginning. All three of a job */
    struct varint_writer state;  /* of the pass when the slice began: index_restore() */
    struct varint_writer waited; /* ends in it that came before their beginnings */
    struct slice slice;
};

struct index_facts {
    uint64_t lost_allocs, lost_frees;
    uint64_t sample_bytes; /* as the last mark that changed it says; 0: none did */
    uint64_t waiting;      /* ends without beginnings */
    uint64_t damaged, gaps;
    int64_t highest, lowest; /* bounds of the maximum: peakbound.h */
    bool is_shared;          /* by several streams, so that there are bounds */
    bool is_sampled;
    bool has_wrong_mapping;
    bool has_missing; /* contexts that the recording lacks, under the number `missing` */
    uint32_t missing;
};

struct fineindex;
struct index_groups;

struct index {
    struct index_entry *entries;
    size_t count, room;
    struct slice all; /* every slice, and what the events leave out; no bytes: not added up yet */
    bool keeps_all;   /* it is to be added up for who asks the next time */
    struct index_facts facts;
    struct timepoints points;
    struct memtrace_point *samples; /* the recording's, by time, with what was live then */
    size_t sample_count;
    struct marks marks; /* their names lie in texts */
    struct texts texts;
    _Atomic(struct fineindex *) fine;      /* fineindex.h; NULL: none yet */
    atomic_bool has_looked;                /* in the cache for one */
    _Atomic(struct index_groups *) groups; /* index_group(); NULL: none yet */
    struct job_memory *fine_memory;        /* of all that ever were there: some may be in use */
    struct job_memory *group_memory;
    struct job_memory *halved; /* of index_halve() */
};

struct index *index_new(void); /* of the present job */

/* The edges behind from_ns between at most `most` slices of at least so many events, growing. */
uint64_t *index_edges(struct timeorder_parts parts, uint64_t from_ns, uint64_t least_events,
                      size_t most, size_t *count);
/* The first edge between INDEX_SLICES slices at most; 0: there is none. Not of a job. */
uint64_t index_first_edge(struct timeorder_parts parts, uint64_t from_ns, uint64_t least_events);

/* The slice that begins now. */
struct index_entry *index_begin(struct index *index, uint64_t start_ns, struct pass *pass);
void index_note_waited(struct index_entry *entry, struct event_block name,
                       const struct pairing_end *end);
/* Frees it early. */
void index_free_entry(struct index_entry *entry);
/* Joins neighbours until there are at most INDEX_SLICES, of INDEX_BYTES. */
void index_shrink(struct index *index);
/* Joins each two neighbours, once. Not of a job. 0, or -1: out of memory. */
int index_halve(struct index *index);

/* Adds up neighbours, eight and eight, and those again, so that a window is the sum of few. For who
 * asks for many windows: it takes as long as one large window. options may be NULL. Once. */
void index_group(struct index *index, const struct replay_options *options);
/* The sum of the slices from `at` on: of *width slices, at most of `most`. NULL: there is none. */
const struct slice *index_group_at(const struct index *index, size_t at, size_t most,
                                   size_t *width);

/* Whether there could be four times as many slices. */
bool index_is_coarse(const struct index *index);

/* Puts a pass that was just started into the state where the slice began. The job fails if it is
 * damaged. */
void index_restore(const struct index_entry *entry, struct pass *pass);

/* So many the headers of the blocks tell. */
uint64_t index_count_events(struct timeorder_parts parts);

/* ---- As bytes ---- */

/* Which events it is of: the headers of the first `blocks` blocks of all parts, without the parts'
 * indices and slices. They hold sizes, times and checksums. */
struct index_cover {
    uint64_t blocks;
    uint64_t hash[2];
};
static inline bool index_is_covered(const struct memtrace_block_header *block) {
    return block->kind != MEMTRACE_BLOCK_INDEX && block->kind != MEMTRACE_BLOCK_SLICES;
}
struct index_cover index_cover(struct timeorder_parts parts, uint64_t most_blocks);
static inline bool index_covers(struct index_cover left, struct index_cover right) {
    return left.blocks == right.blocks && left.hash[0] == right.hash[0] &&
           left.hash[1] == right.hash[1];
}

/* bytes->failed: out of memory. */
void index_pack(const struct index *index, struct index_cover cover, struct varint_writer *bytes);
/* Any bytes may be given: what is not an index of what it says is refused, except that it may lie
 * about what happened, as events may. *reader: of what follows it. It is the present job's. NULL:
 * refused.
 */
struct index *index_unpack(const unsigned char *bytes, size_t size, struct index_cover *cover,
                           struct varint_reader *reader);

void index_fields_slice(const struct fields *fields, struct slice *slice);
void index_fields_mappings(const struct fields *fields, struct mappinglist *mappings);

#endif
