/* SPDX-License-Identifier: MIT */
/*
 * stringtable.h: numbers for strings, 0, 1, ... in the order in which they are met, each string
 * once. The strings must live as long as the table. Used inside analyze/export.
 */
#ifndef ANALYZE_EXPORT_STRINGTABLE_H
#define ANALYZE_EXPORT_STRINGTABLE_H

#include "analyze/base/numbermap.h"

struct stringtable {
    struct numbermap numbers; /* hash to number + 1 */
    const char **items;
    size_t count;
    size_t capacity;
};

/* The number of the string, which is added if need be. SIZE_MAX: out of memory. */
size_t stringtable_number(struct stringtable *table, const char *string);
void stringtable_free(struct stringtable *table);

#endif
