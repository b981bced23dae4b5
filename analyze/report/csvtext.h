/* SPDX-License-Identifier: MIT */
/* csvtext.h: fields of any text in CSV (RFC 4180): inside quotes, quotes doubled. Used inside
 * analyze/report. */
#ifndef ANALYZE_REPORT_CSVTEXT_H
#define ANALYZE_REPORT_CSVTEXT_H

#include "analyze/report/calltree.h"

void csvtext_put(FILE *out, const char *text);
/* A call path in one field: "function at file:line; ...", innermost first. */
void csvtext_put_path(FILE *out, struct calltree_walk walk);

#endif
