/* SPDX-License-Identifier: MIT */
/*
 * timepoints.h: the heap over time. Of a recording it is drawn from the events: of each piece of
 * time the moment with the most live bytes and the last one, so no peak is missed, and pieces get
 * longer as there are more of them. Of a profile it is what was sampled; its maximum is put in.
 *
 * Called by analyze/model (replay, view, model).
 */
#ifndef ANALYZE_PROFILE_TIMEPOINTS_H
#define ANALYZE_PROFILE_TIMEPOINTS_H

#include "analyze/model/model.h"

enum { TIMEPOINTS_PIECES = 512 };

/* highest.time_ns <= last.time_ns */
struct timepoints_piece {
    uint64_t number; /* its place in time */
    struct memtrace_point highest, last;
};

struct timepoints {
    struct timepoints_piece *pieces; /* room for TIMEPOINTS_PIECES */
    size_t count;
    unsigned shift; /* a piece is 2^shift ns long */
};

/* Starts with the shortest pieces, a clock tick each. They belong to the present job. */
void timepoints_start(struct timepoints *points);

/* What happened from window_ns on, later than what was added before. */
void timepoints_add(struct timepoints *points, uint64_t window_ns,
                    const struct memtrace_point *highest, const struct memtrace_point *last);

/* What was sampled of a profile becomes the model's timeline. */
void timepoints_take(struct model *model, const struct memtrace_point *points, size_t count);

/* The points and the samples become the model's timeline: a sample tells what was resident from
 * then on. */
void timepoints_finish(const struct timepoints *points, struct model *model,
                       const struct memtrace_point *samples, size_t sample_count);

/* The maximum becomes a point, if its time lies in the model's and is known. */
void timepoints_put_maximum(struct model *model);

/* The timeline of a model whose totals and times are there gets its ends, from [from_ns, to_ns) as
 * far as that is known, and its maximum. start_live: the live bytes at from_ns. */
void timepoints_complete(struct model *model, uint64_t from_ns, uint64_t to_ns,
                         uint64_t start_live);

/* The place of the first point of model->timeline that is not before this time: the first that sees
 * what happened then. Their number where there is none. */
size_t timepoints_place(const struct model *model, uint64_t time_ns);

#endif
