/* SPDX-License-Identifier: MIT */
/*
 * view.h: a recording in [from, to): what happened then, what is held at `to`, and what was held
 * when the process held most within (selection.h has the words). It is added up from the slices of
 * the recording's index; only those that the window cuts are read again.
 *
 * Called by analyze/model/selection.
 */
#ifndef ANALYZE_WINDOW_VIEW_H
#define ANALYZE_WINDOW_VIEW_H

#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"
#include "analyze/window/wholemodel.h"

/* whole: the model of all of these parts, replayed or from the cache. A job of its own; the caller
 * frees the view. NULL: out of memory, cancelled, or whole is no recording's (error says which). */
struct model *model_view(const struct model *whole, struct timeorder_parts parts, uint64_t from_ns,
                         uint64_t to_ns, const struct replay_options *options, struct error *error);

/* Moves the edges of a window to the nearest ones between slices, so that none is cut: model_view()
 * then reads no events. A window that would be empty grows to the edges around it. false: they
 * stay, since there are no slices. */
bool model_view_snap(const struct model *whole, uint64_t *from_ns, uint64_t *to_ns);

/* Where no slice is cut, growing; the first one is 0 and the last one UINT64_MAX. Slices overlap
 * where threads' events came late: there is no edge then. `whole` has an index. They are the
 * present job's. */
uint64_t *model_view_edges(const struct model *whole, size_t *count);

#endif
