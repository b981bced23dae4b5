/* SPDX-License-Identifier: MIT */
/*
 * regexcost.h: what a regular expression would cost before regcomp() is given it: that writes
 * repetitions out, so that "a{1,32767}" takes minutes and gigabytes, which nothing can interrupt.
 *
 * Called by analyze/filter and analyze/query for expressions of users. Any thread.
 */
#ifndef ANALYZE_BASE_REGEXCOST_H
#define ANALYZE_BASE_REGEXCOST_H

#include <stdbool.h>

/* Whether repetitions, written out, would make more than 2048 characters of the extended expression
 * than stand there, or groups are nested too deeply. Of what is malformed regcomp() says more. */
bool regexcost_is_high(const char *regex);

#endif
