/* SPDX-License-Identifier: MIT */
/*
 * shellword.h: a word of a command line that can be pasted into a shell.
 *
 * Called by analyze/report and cli. Any thread.
 */
#ifndef ANALYZE_REPORT_SHELLWORD_H
#define ANALYZE_REPORT_SHELLWORD_H

#include <stdbool.h>
#include <stdio.h>

/* The word as it is, or between quotes where a shell would see more than a word in it, or a
 * terminal more than text; true: so. */
bool shellword_put(FILE *out, const char *word);

#endif
