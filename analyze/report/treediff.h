/* SPDX-License-Identifier: MIT */
/*
 * treediff.h: two trees of calls laid over each other, so that each call has the costs of both.
 *
 * Called by web/server. Calls are the same if their callers are, and their functions (diff.h); by
 * line, if their lines are, too.
 */
#ifndef ANALYZE_REPORT_TREEDIFF_H
#define ANALYZE_REPORT_TREEDIFF_H

#include "analyze/report/calltree.h"
#include "analyze/report/diff.h"

/* Side 0 is the earlier, as in diff.h. */
struct treediff {
    struct calltree tree; /* cost: the greater of both sides' main numbers; frames of side 1 where
                             it has the call */
    struct treediff_costs {
        struct cost cost[2];
        uint64_t self[2];
    } * costs; /* by call */
};

struct treediff treediff_make(const struct calltree trees[2], struct diff_functions *functions,
                              bool by_line);

#endif
