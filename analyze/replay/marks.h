/* SPDX-License-Identifier: MIT */
/*
 * marks.h: collects what a program said of itself (struct model_mark) while its recording is
 * replayed, up to MODEL_MARKS of it.
 *
 * Called by analyze/window/wholemodel. Belongs to the job that it was begun in. Start
 * from {0}.
 */
#ifndef ANALYZE_REPLAY_MARKS_H
#define ANALYZE_REPLAY_MARKS_H

#include "analyze/model/model.h"
#include "analyze/replay/timeorder.h"

struct marks {
    struct model_mark *items; /* names belong to the timeorder */
    size_t count, room;
    uint64_t total;
};

/* An event of kind EVENT_MARK. */
void marks_add(struct marks *marks, const struct timeorder_event *entry);

/* Gives them to the model, by time. Before the timeorder's end. */
void marks_finish(const struct marks *marks, struct model *model);

/* The model's marks with these names (each a string, "" included) as its own. */
void marks_copy(struct model *model, const struct model_mark *marks, size_t count);

#endif
