/* SPDX-License-Identifier: MIT */
/*
 * rangetable.c: sorted address ranges that may nest. See rangetable.h.
 */
#include "analyze/symbol/rangetable.h"

#include "analyze/base/array.h"

#include <stdlib.h>

int rangetable_add(struct rangetable *table, uint64_t low, uint64_t high, uint64_t value,
                   uint64_t rank) {
    if (low >= high)
        return 0;
    if (array_grow(&table->ranges, &table->room, table->count, sizeof *table->ranges) != 0)
        return -1;
    table->ranges[table->count++] =
        (struct range){.low = low, .high = high, .value = value, .rank = rank};
    return 0;
}

static int compare(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_ranges(const void *left, const void *right) {
    const struct range *a = left, *b = right;
    if (a->low != b->low)
        return compare(a->low, b->low);
    if (a->high != b->high)
        return compare(b->high, a->high);
    if (a->rank != b->rank)
        return compare(b->rank, a->rank);
    return compare(b->value, a->value);
}

void rangetable_seal(struct rangetable *table) {
    if (table->count)
        qsort(table->ranges, table->count, sizeof *table->ranges, compare_ranges);
    uint64_t reach = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (table->ranges[i].high > reach)
            reach = table->ranges[i].high;
        table->ranges[i].reach = reach;
    }
}

const struct range *rangetable_find(const struct rangetable *table, uint64_t address,
                                    const struct range *last) {
    size_t below = 0; /* ranges [0, below) start at or before the address */
    if (last) {
        below = (size_t)(last - table->ranges);
    } else {
        size_t end = table->count;
        while (below < end) {
            size_t middle = below + (end - below) / 2;
            if (table->ranges[middle].low <= address)
                below = middle + 1;
            else
                end = middle;
        }
    }
    while (below > 0 && table->ranges[below - 1].reach > address) {
        below--;
        if (table->ranges[below].high > address)
            return &table->ranges[below];
    }
    return NULL;
}

void rangetable_free(struct rangetable *table) {
    free(table->ranges);
    *table = (struct rangetable){0};
}
