/* SPDX-License-Identifier: MIT */
/*
 * recast.h: a question about pools or mappings becomes one about the heap: a model in which they
 * are the heap, so that totals, trees and tables are of them.
 *
 * Called by cli.
 */
#ifndef ANALYZE_MODEL_RECAST_H
#define ANALYZE_MODEL_RECAST_H

#include "analyze/model/model.h"

/* `classes`: bits 1 << enum model_class. The contexts of these classes are of class MODEL_HEAP in
 * *recast, others are not there, and the totals are theirs; the maximum is what they held when the
 * heap held most. Threads stay as they are. Shares all but the contexts with `model`;
 * free with recast_free(). 0, or -1: out of memory. */
int recast_make(const struct model *model, uint32_t classes, struct model *recast);
void recast_free(struct model *recast);

#endif
