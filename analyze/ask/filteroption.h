/* SPDX-License-Identifier: MIT */
/*
 * filteroption.h: one option of a filter that is no range, as a part of a selection.
 *
 * Called by cli/filters.
 */
#ifndef ANALYZE_ASK_FILTEROPTION_H
#define ANALYZE_ASK_FILTEROPTION_H

#include "analyze/filter/selection.h"
#include "analyze/model/model.h"

/* key: enum filter_key. value: NULL of flags; must live as long as the selection. Without a model
 * only what the value looks like is checked. 0 or -1. */
int filteroption_apply(struct selection *selection, int key, const char *value,
                       const struct model *model, struct error *error);

#endif
