/* SPDX-License-Identifier: MIT */
/*
 * massiftree.h: the tree of a detailed massif snapshot: from the functions that allocated down to
 * who called them, the dearest first, what is below a threshold in one line.
 *
 * Used by massif.c.
 */
#ifndef ANALYZE_EXPORT_MASSIFTREE_H
#define ANALYZE_EXPORT_MASSIFTREE_H

#include "analyze/export/export.h"
#include "analyze/report/calltree.h"

/* What a context holds at the moment. */
struct massiftree_item {
    struct pathwalk walk; /* where in its path the tree has come */
    uint64_t bytes;
};

/* An item for a context (pathwalk() wants its path); `report` as for calltree.h. The items'
 * order is changed; `total` is what they hold together. */
void massiftree_put(const struct export *export, struct massiftree_item *items, size_t count,
                    uint64_t total);

#endif
