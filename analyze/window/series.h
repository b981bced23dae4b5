/* SPDX-License-Identifier: MIT */
/*
 * series.h: what some call paths held over time.
 *
 * Called by analyze/report/findings and web/server. The slices of a recording's index tell it at
 * their edges; short recordings have few slices, so that their events are gone through. Any thread,
 * each with its own.
 */
#ifndef ANALYZE_WINDOW_SERIES_H
#define ANALYZE_WINDOW_SERIES_H

#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"

enum {
    SERIES_EDGES = 32,            /* so many edges of slices in a window are enough to draw it */
    SERIES_PASS_EVENTS = 1000000, /* else so many events are gone through: about 0.1 s */
};

/* live[row * points + i]: bytes that the row's path held at times[i], of what happened before. */
struct series {
    uint64_t *times; /* grow */
    size_t points;
    uint64_t *live;
    size_t rows;
    bool is_pass; /* events were gone through */
};

/*
 * Of the contexts `ids`, at most `most` (at least 2) moments of [from_ns, to_ns), its ends among
 * them. `whole` is the model of all of these parts. A profile has no series: no points. Costs that
 * a recording culled are not in it; of slices, what several threads did out of the order of time
 * counts where the replay has it. 0, or -1: cancelled (error says so). It is the present job's.
 */
int series_make(struct series *series, const struct model *whole, struct timeorder_parts parts,
                uint64_t from_ns, uint64_t to_ns, const uint32_t *ids, size_t count, size_t most,
                const struct replay_options *options, struct error *error);
/* The same at given moments, which grow; they are copied. Of slices that one lies in, what happened
 * there counts as behind it. */
int series_at(struct series *series, const struct model *whole, struct timeorder_parts parts,
              const uint64_t *times, size_t points, const uint32_t *ids, size_t count,
              const struct replay_options *options, struct error *error);

#endif
