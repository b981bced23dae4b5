/* SPDX-License-Identifier: MIT */
/* treetext.h: what draws a tree of calls, and what lists it. Used inside analyze/report. */
#ifndef ANALYZE_REPORT_TREETEXT_H
#define ANALYZE_REPORT_TREETEXT_H

#include "analyze/report/calltree.h"

/* treetable.c, for CSV and JSON */
void treetable_put(const struct report *report, enum metric metric, const struct calltree *tree);

#endif
