/* SPDX-License-Identifier: MIT */
/*
 * wholereplay.h: goes through the events of a recording, all of them once, in the order of
 * timeorder.h, and makes its index: at one go or, where the recording grows, in several, each of
 * which costs what was added since the one before.
 *
 * Called by analyze/window (wholemodel, modelcache) and by the collector while it records. Belongs
 * to one thread.
 *
 * To go on later all events before a moment must be in the file. A stream's events come into the
 * file some time after they happened, so the moment is a guess (wholereplay_settled()), and a block
 * that came too late is noticed: then what was done is of no use, and all begins anew.
 */
#ifndef ANALYZE_WINDOW_WHOLEREPLAY_H
#define ANALYZE_WINDOW_WHOLEREPLAY_H

#include "analyze/window/index.h"

struct wholereplay {
    struct index *index;
    struct pass *pass;          /* what lasts of it between two runs: no accounts */
    uint64_t until_ns;          /* all before it was gone through */
    uint64_t blocks;            /* of the recording, as index_cover() counts, at the last run */
    struct varint_writer place; /* how far each stream is */
    uint32_t *streams;          /* their numbers */
    size_t stream_count;
    uint64_t unreadable;         /* blocks that were met */
    int64_t live;                /* at until_ns */
    struct accounts_crest now;   /* how the heap was after the last event */
    struct accounts_crest crest; /* since the last point */
    uint64_t point_ns;           /* where the present piece of time began ... */
    uint64_t next_point_ns;      /* ... and ends */
    size_t next_sample;
    uint64_t events;           /* that the last run went through */
    struct job_memory *memory; /* its own, with itself */
};

enum wholereplay_result {
    WHOLEREPLAY_FAILED = -1, /* out of memory, or no thread to read with */
    WHOLEREPLAY_OK = 0,
    WHOLEREPLAY_ANEW = 1, /* something came too late: free it and start again */
};

struct wholereplay *wholereplay_new(void); /* NULL: out of memory */
void wholereplay_free(void *replay);       /* of it; NULL is allowed */

/* Up to what moment, as far as one can tell, all events are in the file. */
uint64_t wholereplay_settled(struct timeorder_parts parts);

/* A job of its own. The events of windows that begin before until_ns, more than the last time;
 * UINT64_MAX: to the end, and nothing comes after that. `model` has the header and all nodes
 * (wholemodel_tables()); options may be NULL. */
enum wholereplay_result wholereplay_run(struct wholereplay *replay, const struct model *model,
                                        struct timeorder_parts parts, uint64_t until_ns,
                                        const struct replay_options *options);

/* As bytes, to go on in another process. */
void wholereplay_pack(const struct wholereplay *replay, struct timeorder_parts parts,
                      struct varint_writer *bytes);
/* NULL: damaged, not of these parts or of what they were before they grew, or out of memory. It has
 * memory of its own, as one of wholereplay_new(). */
struct wholereplay *wholereplay_unpack(const unsigned char *bytes, size_t size,
                                       struct timeorder_parts parts);

#endif
