/* SPDX-License-Identifier: MIT */
/* utf8.h: names of files and functions may be any bytes; JSON, XML and HTML are UTF-8. Called by
 * analyze/report and analyze/export. Any thread. */
#ifndef ANALYZE_REPORT_UTF8_H
#define ANALYZE_REPORT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* What stands for bytes that are no character: U+FFFD */
#define UTF8_BAD "\xef\xbf\xbd"

/* Bytes of the whole character at text, which ends with a zero; 0: no character begins there. */
size_t utf8_length(const char *text);

/* Whether the text is nothing but whole characters. */
bool utf8_is_valid(const char *text);

/* A copy with UTF8_BAD for each byte that belongs to no character; the caller frees it. NULL: out
 * of memory. */
char *utf8_repair(const char *text);

#endif
