/* SPDX-License-Identifier: MIT */
/*
 * apimetric.h: the model that a metric is of. Leaks are told without those that are suppressed, as
 * in reports; what was freed only at shutdown, or soon, takes a pass over single blocks.
 *
 * Called by endpoints with a metric.
 */
#ifndef WEB_SERVER_APIMETRIC_H
#define WEB_SERVER_APIMETRIC_H

#include "analyze/report/diff.h"
#include "web/server/api.h"

/* What the call's metric is of in a view of the call; it lives as long as the view. Notes where it
 * came from, and what a command is to be told. */
const struct model *apimetric_model(struct api_call *call, const struct answer *view);

/* The bytes of a kept model: of it and its contexts. */
size_t apimetric_bytes(const void *value);

/* The same for this metric, whatever the call's. */
const struct model *apimetric_of(struct api_call *call, const struct answer *view,
                                 enum metric metric);

/* The same with the leaks that are suppressed. */
const struct model *apimetric_all(struct api_call *call, const struct answer *view,
                                  enum metric metric);

/* The model of a view in which the pools or mappings that its filters ask for are the heap. */
const struct model *apimetric_heap(struct api_call *call, const struct answer *view);

/* The sums of what is selected, made now if the view lacks them. */
const struct model *apimetric_sums(struct api_call *call);

/* The two sides of a difference, as diff.h has them: what is the base, and what is compared with
 * it. Without suppressions: models of apimetric_model() have none. */
void apimetric_sides(const struct api_call *call, struct diff_side sides[2]);

/* Notes the command that compares the same two, by "path", "function" or "file". */
void apimetric_diff_command(struct api_call *call, const char *by);

/* As parameters have it: "maximum", ..., "short". */
const char *apimetric_name(enum metric metric);

/* The option of `memtrace report` that shows the call's metric: "--show-peak". Valid as long as the
 * call. */
const char *apimetric_option(const struct api_call *call);

#endif
