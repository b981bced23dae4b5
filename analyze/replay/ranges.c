/* SPDX-License-Identifier: MIT */
/* ranges.c: disjoint address ranges. See ranges.h. */
#include "analyze/replay/ranges.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

void ranges_free(struct ranges *ranges) {
    free(ranges->items);
    *ranges = (struct ranges){0};
}

/* The first range that ends above the address. */
static size_t first_above(const struct ranges *ranges, uint64_t address) {
    size_t low = 0;
    size_t high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->items[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int ranges_add(struct ranges *ranges, struct range range) {
    size_t at = first_above(ranges, range.start);
    if (ranges->count == ranges->capacity) {
        size_t capacity = ranges->capacity != 0 ? ranges->capacity * 2 : FIRST_CAPACITY;
        struct range *grown = realloc(ranges->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        ranges->items = grown;
        ranges->capacity = capacity;
    }
    memmove(&ranges->items[at + 1], &ranges->items[at],
            (ranges->count - at) * sizeof *ranges->items);
    ranges->items[at] = range;
    ranges->count++;
    return 0;
}

static void erase(struct ranges *ranges, size_t at) {
    ranges->count--;
    memmove(&ranges->items[at], &ranges->items[at + 1],
            (ranges->count - at) * sizeof *ranges->items);
}

/* Takes the piece out of range `at`, which is larger. */
static int cut(struct ranges *ranges, size_t at, const struct range *piece) {
    struct range *item = &ranges->items[at];
    struct range right = *item;
    right.start = piece->end;
    right.is_part = true;
    if (piece->start == item->start) {
        item->start = piece->end;
        return 0;
    }
    item->end = piece->start;
    return right.start < right.end ? ranges_add(ranges, right) : 0;
}

int ranges_remove(struct ranges *ranges, uint64_t start, uint64_t end,
                  void (*removed)(void *argument, const struct range *piece, bool is_last),
                  void *argument) {
    size_t at = first_above(ranges, start);
    while (at < ranges->count && ranges->items[at].start < end) {
        struct range whole = ranges->items[at];
        struct range piece = whole;
        piece.start = whole.start > start ? whole.start : start;
        piece.end = whole.end < end ? whole.end : end;
        if (piece.start == whole.start && piece.end == whole.end) {
            erase(ranges, at);
            removed(argument, &piece, !whole.is_part);
            continue;
        }
        removed(argument, &piece, false);
        if (cut(ranges, at, &piece) != 0) {
            return -1;
        }
        at++;
    }
    return 0;
}
