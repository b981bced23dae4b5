/* SPDX-License-Identifier: MIT */
/*
 * htmlcalls.h: the calls and functions in the data of the HTML page. Used inside analyze/export.
 *
 * Members of an object: "calls" are columns, parents before their callees; each row behind `kept`
 * stands for the callees of one call that were left out, so that sums are the totals. "functions"
 * are columns, too; "strings" are files and modules.
 */
#ifndef ANALYZE_EXPORT_HTMLCALLS_H
#define ANALYZE_EXPORT_HTMLCALLS_H

#include "analyze/export/callforest.h"
#include "analyze/rows/jsonwriter.h"

/* 0, or -1: out of memory. */
int htmlcalls_write(struct jsonwriter *json, const struct export *export,
                    const struct callforest *forest);

#endif
