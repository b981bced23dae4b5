/* SPDX-License-Identifier: MIT */
/*
 * topnumber.h: numbers for narrow columns: "812.0M", "310.2k". What has room for more is spelled as
 * everywhere (analyze/rows/number.h).
 *
 * Called by topdraw. Each function writes into the caller's buffer and returns it.
 */
#ifndef TOP_TOPNUMBER_H
#define TOP_TOPNUMBER_H

#include <stdint.h>

struct topnumber {
    char text[32];
};

const char *topnumber_bytes(struct topnumber *buffer, double bytes);  /* "812.0M": 2^20 */
const char *topnumber_change(struct topnumber *buffer, double bytes); /* "+4.1M", "-27", "0" */
const char *topnumber_count(struct topnumber *buffer, double count);  /* "310.2k": 10^3 */
const char *topnumber_share(struct topnumber *buffer, uint64_t part, uint64_t whole); /* "12%" */
const char *topnumber_clock(struct topnumber *buffer, uint64_t ns); /* "2:13:07" */

#endif
