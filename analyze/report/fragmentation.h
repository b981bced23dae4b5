/* SPDX-License-Identifier: MIT */
/* fragmentation.h: the parts of the report on fragmentation. Used inside analyze/report. */
#ifndef ANALYZE_REPORT_FRAGMENTATION_H
#define ANALYZE_REPORT_FRAGMENTATION_H

#include "analyze/blocks/heapmap.h"
#include "analyze/report/reports.h"

/* addressmap.c: the heap as characters, each for some bytes, by how full these are. */
void addressmap_draw(const struct report *report, const struct heapmap *map);

#endif
