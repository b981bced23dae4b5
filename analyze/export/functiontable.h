/* SPDX-License-Identifier: MIT */
/*
 * functiontable.h: numbers for functions, 0, 1, ... in the order in which they are met: formats
 * write each name once and then its number. By line (export.by_line) lines are what is numbered.
 *
 * Used inside analyze/export.
 */
#ifndef ANALYZE_EXPORT_FUNCTIONTABLE_H
#define ANALYZE_EXPORT_FUNCTIONTABLE_H

#include "analyze/base/numbermap.h"
#include "analyze/report/calltree.h"

struct functiontable {
    bool by_line;
    struct numbermap numbers; /* key to number + 1 */
    const struct names_frame **frames;
    size_t count;
    size_t capacity;
};

/* Adds the functions of a tree, or one. 0, or -1: out of memory. */
int functiontable_add(struct functiontable *table, const struct calltree *tree);
int functiontable_add_frame(struct functiontable *table, const struct names_frame *frame);
void functiontable_free(struct functiontable *table);

/* The number of a function that was added. */
size_t functiontable_number(const struct functiontable *table, const struct names_frame *frame);

#endif
