/* SPDX-License-Identifier: MIT */
/*
 * numbering.h: numbers 1, 2, ... for what a format writes once and then names by its number:
 * functions, files, texts, in the order in which they are met.
 *
 * Used inside analyze/export.
 */
#ifndef ANALYZE_EXPORT_NUMBERING_H
#define ANALYZE_EXPORT_NUMBERING_H

#include "analyze/base/numbermap.h"

#include <stdbool.h>

/* All zero is empty and ready. */
struct numbering {
    struct numbermap numbers; /* by key */
    size_t count;             /* the number given last */
    const void **items;       /* items[number - 1], where they were given */
    size_t room;
    bool out_of_memory; /* numbers may then be given twice */
};

/* The number of what has this key. *is_new (may be NULL): it has just been given one. */
size_t numbering_of(struct numbering *numbering, uint64_t key, bool *is_new);

/* The same, and keeps the item; for numberings all of whose numbers are had in this way. */
size_t numbering_add(struct numbering *numbering, uint64_t key, const void *item);

/* The key of a text. */
uint64_t numbering_key(const char *text);

void numbering_free(struct numbering *numbering);

#endif
