/* SPDX-License-Identifier: MIT */
/*
 * array.h: the one way an array grows: its room doubles.
 *
 * An array is three fields of its owner: items, how many there are, and for how many there is room.
 * All zero is empty. Any thread, one at a time for one array.
 *
 *     if (array_grow(&list->items, &list->room, list->count, sizeof *list->items) != 0) {
 *         return -1;
 *     }
 *     list->items[list->count++] = item;
 */
#ifndef ANALYZE_BASE_ARRAY_H
#define ANALYZE_BASE_ARRAY_H

#include <stddef.h>

/*
 * Room for at least one item more than count. `items` points to the pointer to the first item,
 * which malloc made or which is NULL; whoever has it frees it. 0, or -1: out of memory, and nothing
 * changed.
 */
int array_grow(void *items, size_t *room, size_t count, size_t item_size);

/* The same where nobody keeps the room: it is count, rounded up to a power of two. */
int array_grow_by_count(void *items, size_t count, size_t item_size);

/* Room for at least `wanted` items, for whoever adds many at once. */
int array_reserve(void *items, size_t *room, size_t wanted, size_t item_size);

/* By a number of theirs, a uint64_t at this offset: the least first. */
void array_sort_by(void *items, size_t count, size_t item_size, size_t offset);
/* qsort, which must not be called with NULL: items may be that where there are none. */
void array_sort(void *items, size_t count, size_t item_size,
                int (*compare)(const void *left, const void *right));

#endif
