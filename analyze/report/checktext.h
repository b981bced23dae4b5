/* SPDX-License-Identifier: MIT */
/* checktext.h: a result of a check in words. Used by check*.c alone. */
#ifndef ANALYZE_REPORT_CHECKTEXT_H
#define ANALYZE_REPORT_CHECKTEXT_H

#include "analyze/report/check.h"

/* "leaked is 8.5 KiB (8,704 bytes), more than 0 B: 8.5 KiB in cache_fill [leaked <= 0]"; the caller
 * frees it. NULL: out of memory. */
char *checktext_message(const struct check_result *result);

/* checkdata.c. 0, or -1: out of memory. */
int check_write_junit(const struct check_report *report);
int check_write_json(const struct check_report *report);

#endif
