/* SPDX-License-Identifier: MIT */
/* interval.c: disjoint address ranges. See interval.h. */
#include "runtime/heap/interval.h"

#include "runtime/base/sys.h"

enum { FIRST_CAPACITY = 512 };

static int make_room(struct intervals *set) {
    size_t old = set->capacity * sizeof *set->item;
    size_t capacity = set->capacity != 0 ? set->capacity * 2 : FIRST_CAPACITY;
    struct interval *item;
    if (set->count < set->capacity) {
        return 0;
    }
    item = set->item == NULL ? sys_map(capacity * sizeof *item)
                             : sys_grow_map(set->item, old, capacity * sizeof *item);
    if (item == NULL) {
        return -1;
    }
    set->item = item;
    set->capacity = capacity;
    return 0;
}

/* Index of the first range that ends above the address. */
static size_t first_above(const struct intervals *set, uintptr_t address) {
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (set->item[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int interval_add(struct intervals *set, struct interval range) {
    size_t at;
    if (make_room(set) != 0) {
        return -1;
    }
    at = first_above(set, range.start);
    __builtin_memmove(set->item + at + 1, set->item + at, (set->count - at) * sizeof *set->item);
    set->item[at] = range;
    set->count++;
    return 0;
}

static void erase(struct intervals *set, size_t at) {
    set->count--;
    __builtin_memmove(set->item + at, set->item + at + 1, (set->count - at) * sizeof *set->item);
}

void interval_remove(struct intervals *set, uintptr_t start, uintptr_t end,
                     void (*removed)(void *argument, const struct interval *piece, int is_last),
                     void *argument) {
    size_t at = first_above(set, start);
    while (at < set->count && set->item[at].start < end) {
        struct interval *item = &set->item[at];
        struct interval whole = *item;
        struct interval piece = whole;
        piece.start = whole.start > start ? whole.start : start;
        piece.end = whole.end < end ? whole.end : end;
        if (piece.start == whole.start && piece.end == whole.end) {
            erase(set, at);
            removed(argument, &piece, !whole.is_part);
            continue;
        }
        removed(argument, &piece, 0);
        if (piece.start == whole.start) { /* the left end goes */
            item->start = piece.end;
        } else if (piece.end == whole.end) { /* the right end goes */
            item->end = piece.start;
        } else { /* a hole */
            struct interval right = {piece.end, whole.end, whole.context, 1, whole.is_inherited};
            item->end = piece.start;
            interval_add(set, right);
        }
        at++;
    }
}
