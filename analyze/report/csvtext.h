/* SPDX-License-Identifier: MIT */
/* csvtext.h: fields of any text in CSV (RFC 4180): inside quotes, quotes doubled; what begins like
 * a formula of a spreadsheet is marked as text. Used by analyze/report and analyze/query. */
#ifndef ANALYZE_REPORT_CSVTEXT_H
#define ANALYZE_REPORT_CSVTEXT_H

#include "analyze/report/calltree.h"

void csvtext_put(FILE *out, const char *text);
/* In quotes only where it needs them. */
void csvtext_put_short(FILE *out, const char *text);
/* A call path in one field: "function at file:line; ...", innermost first, so many frames at most
 * (0: all). */
void csvtext_put_path(FILE *out, struct calltree_walk walk, size_t most);

#endif
