/* SPDX-License-Identifier: MIT */
/*
 * lifepass.h: the blocks that an export is about, for formats that look at single ones.
 *
 * Used inside analyze/export.
 */
#ifndef ANALYZE_EXPORT_LIFEPASS_H
#define ANALYZE_EXPORT_LIFEPASS_H

#include "analyze/export/export.h"
#include "analyze/model/model.h"

/* Whether blocks can be seen one by one, beginnings in their order. */
bool lifepass_possible(const struct export *export);

/* All that are selected; as lives_visit(). */
int lifepass_visit(const struct export *export, const struct lives_visitor *visitor,
                   struct error *error);

/* Whether a context is of the heap, which is all that such formats know. */
bool lifepass_is_heap(const struct model *model, uint32_t context);

#endif
