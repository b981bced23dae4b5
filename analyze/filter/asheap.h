/* SPDX-License-Identifier: MIT */
/*
 * asheap.h: a question about pools or mappings becomes one about the heap: a model in which they
 * are the heap, so that totals, trees and tables are of them.
 *
 * Called by cli.
 */
#ifndef ANALYZE_FILTER_ASHEAP_H
#define ANALYZE_FILTER_ASHEAP_H

#include "analyze/model/model.h"

/* `classes`: bits 1 << enum model_class. The contexts of these classes are of class MODEL_HEAP in
 * *heap, others are not there, and the totals are theirs; the maximum is what they held when the
 * heap held most. Threads stay as they are. Shares all but the contexts with `model`;
 * free with asheap_free(). 0, or -1: out of memory. */
int asheap_make(const struct model *model, uint32_t classes, struct model *heap);
void asheap_free(struct model *heap);

#endif
