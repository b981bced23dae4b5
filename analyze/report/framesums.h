/* SPDX-License-Identifier: MIT */
/*
 * framesums.h: what call paths cost, added up by the functions, lines or files of their frames:
 * what each allocated itself, and what was allocated in it and in what it called. A path counts
 * once for each of them, however often it goes through.
 *
 * Called by analyze/report (flat.c) and web/server. Heap contexts only.
 */
#ifndef ANALYZE_REPORT_FRAMESUMS_H
#define ANALYZE_REPORT_FRAMESUMS_H

#include "analyze/base/numbermap.h"
#include "analyze/report/metric.h"

enum framesums_by { FRAMESUMS_FUNCTION, FRAMESUMS_LINE, FRAMESUMS_FILE };

/* side: of those paths whose main number is not 0, as in trees. */
struct framesums_costs {
    struct cost of[METRIC_COUNT];
    uint64_t paths;
};

struct framesums_item {
    const struct names_frame *frame; /* one of its frames */
    uint64_t key;
    struct framesums_costs self;
    struct framesums_costs inclusive;
    uint32_t active; /* while paths are walked: how often it is on this one */
};

struct framesums {
    struct framesums_item *items;
    size_t count;
    size_t room;
    enum framesums_by by;
    struct numbermap by_key; /* places in items, from 1 on */
};

/* By line and file, frames without one are left out. */
struct framesums framesums_make(const struct report *report, enum framesums_by by);

/* The key of a frame, 0: it has none. */
uint64_t framesums_key(enum framesums_by by, const struct names_frame *frame);
/* NULL: it has no costs. */
const struct framesums_item *framesums_find(const struct framesums *sums, uint64_t key);

/* As a metric shows them, also one of a model that detail_submodel() made. */
struct cost framesums_cost(enum metric metric, const struct framesums_costs *costs);

/* What allocated most itself first. */
void framesums_sort(struct framesums *sums, enum metric metric);

#endif
