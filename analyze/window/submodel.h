/* SPDX-License-Identifier: MIT */
/*
 * submodel.h: a new model for a part of what another one tells: everything that does not depend on
 * which part that is.
 *
 * Called by analyze/model (view, selection).
 */
#ifndef ANALYZE_WINDOW_SUBMODEL_H
#define ANALYZE_WINDOW_SUBMODEL_H

#include "analyze/model/model.h"

/* Makes the model, in its job, a copy of `whole` without costs: no contexts, lifetimes, foreign
 * frees, totals, and threads whose counts are 0. */
void submodel_start(struct model *model, const struct model *whole);

/* Leaves only the marks and timeline points of [from, to) in a submodel and notes the view. */
void submodel_narrow(struct model *model, uint64_t from_ns, uint64_t to_ns);

#endif
