/* SPDX-License-Identifier: MIT */
/*
 * marks.h: collects what a program said of itself (struct model_mark) while its recording is
 * replayed, up to MODEL_MARKS of it.
 *
 * Called by analyze/window/wholemodel. Belongs to one thread. Start from {0}.
 */
#ifndef ANALYZE_REPLAY_MARKS_H
#define ANALYZE_REPLAY_MARKS_H

#include "analyze/model/model.h"
#include "analyze/replay/timeorder.h"

struct marks {
    struct model_mark *items; /* names belong to the timeorder */
    size_t count;
    uint64_t total;
};

void marks_free(struct marks *marks);

/* An event of kind EVENT_MARK. 0, or -1: out of memory. */
int marks_add(struct marks *marks, const struct timeorder_event *entry);

/* Hands them to the model, by time. Before the timeorder's end. 0, or -1: out of memory. */
int marks_finish(struct marks *marks, struct model *model);

/* The model's marks with these names (each a string, "" included) as its own. 0 or -1. */
int marks_copy(struct model *model, const struct model_mark *marks, size_t count);

#endif
