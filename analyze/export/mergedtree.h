/* SPDX-License-Identifier: MIT */
/*
 * mergedtree.h: the tree of functions from main down, as `memtrace report` draws it, for formats
 * that hold such trees.
 *
 * Used inside analyze/export. Heap contexts only, so that sums are the totals.
 */
#ifndef ANALYZE_EXPORT_MERGEDTREE_H
#define ANALYZE_EXPORT_MERGEDTREE_H

#include "analyze/base/job.h"
#include "analyze/export/export.h"
#include "analyze/export/shared.h"
#include "analyze/report/calltree.h"

/* The tree for a cost, export.depth calls deep: those that are deeper count in the last of these;
 * it is of the job. calls[0] is the root: all of it. 0 or -1. */
int mergedtree_open(struct calltree *tree, const struct export *export, enum metric metric,
                    struct error *error);

/* The call after `at` in the order in which trees are written, a parent before its children, the
 * dearest child first; 0: that was the last. *depth, of the root 0, goes along. */
uint32_t mergedtree_next(const struct calltree *tree, uint32_t at, size_t *depth);
/* The same, without what is below `at`. */
uint32_t mergedtree_skip(const struct calltree *tree, uint32_t at, size_t *depth);

enum { MERGEDTREE_LABEL = 4200 };

/* The function's name as export asks for it, or module+0xoffset; by line: also " file.c:12". Into a
 * buffer of MERGEDTREE_LABEL bytes, which is returned. */
const char *mergedtree_label(const struct export *export, const struct names_frame *frame,
                             char *buffer);
/* The same without a line, for formats in which lines have a place of their own. */
const char *mergedtree_name(const struct export *export, const struct names_frame *frame,
                            char *buffer);

/* The number of a frame's function, or of its line by_line; the items are frames. */
size_t mergedtree_number(struct numbering *functions, const struct export *export,
                         const struct names_frame *frame);
/* Numbers the functions of all calls. 0, or -1: out of memory. */
int mergedtree_number_all(struct numbering *functions, const struct export *export,
                          const struct calltree *tree);

/* Before a format writes the whole path of each call that has a cost of its own: -1, and error says
 * why, where that would be more than 100 MB and export.depth does not bound it. sizes: what each
 * function takes, by its number. */
int mergedtree_refuse_bulk(const struct calltree *tree, const struct export *export,
                           struct numbering *functions, const size_t *sizes, struct error *error);

#endif
