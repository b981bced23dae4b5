/* SPDX-License-Identifier: MIT */
/*
 * contextfilter.h: which calling contexts a selection's filters of contexts let through.
 *
 * Called by the files of analyze/model that answer selections. One thread at a time.
 */
#ifndef ANALYZE_FILTER_CONTEXTFILTER_H
#define ANALYZE_FILTER_CONTEXTFILTER_H

#include "analyze/filter/selection.h"
#include "analyze/model/model.h"

/* places[id]: the place of context `id` in whole->contexts, from 1 on, if the filters hold for it;
 * 0: they do not, or it has no counts. As many as the model has nodes; the caller frees it. `names`
 * may be NULL where the selection has no patterns. NULL: out of memory. */
uint32_t *contextfilter_choose(const struct selection *selection, const struct model *whole,
                               const struct names *names);

#endif
