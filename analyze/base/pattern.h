/* SPDX-License-Identifier: MIT */
/*
 * pattern.h: regular expressions that users give: POSIX extended, compiled here and nowhere else.
 *
 * Called by analyze/filter, analyze/query and cli. Any thread. The C library copies what is
 * repeated, so that a few nested {1,99} take all memory, and matches with back-references take time
 * without bounds; a server that others may ask has to refuse both.
 */
#ifndef ANALYZE_BASE_PATTERN_H
#define ANALYZE_BASE_PATTERN_H

#include <regex.h>
#include <stddef.h>

enum { PATTERN_WHY = 128 };

/* Whether it matches can be asked, not where. 0, or -1: why says what is wrong with
 * it, and nothing is to be freed. */
int pattern_compile(regex_t *regex, const char *text, char why[PATTERN_WHY]);

#endif
