/* SPDX-License-Identifier: MIT */
/* markup.h: text inside of XML and HTML. Used inside analyze/export. */
#ifndef ANALYZE_EXPORT_MARKUP_H
#define ANALYZE_EXPORT_MARKUP_H

#include <stddef.h>
#include <stdio.h>

/* Writes text so that it says the same in elements and in quoted attributes. Control characters,
 * which XML has not, become '?', bytes that are no UTF-8 U+FFFD. */
void markup_text(FILE *out, const char *text);

/* The same, of the first `most` characters only; where there are more, ".." ends them. */
void markup_text_cut(FILE *out, const char *text, size_t most);

#endif
