/* SPDX-License-Identifier: MIT */
/* stringtable.c: see stringtable.h. */
#include "analyze/export/stringtable.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static int grow(struct stringtable *table) {
    size_t capacity = table->capacity != 0 ? table->capacity * 2 : 64;
    const char **grown;
    if (table->count < table->capacity) {
        return 0;
    }
    grown = realloc(table->items, capacity * sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    table->items = grown;
    table->capacity = capacity;
    return 0;
}

size_t stringtable_number(struct stringtable *table, const char *string) {
    uint64_t hash = XXH3_64bits(string, strlen(string));
    uintptr_t found = (uintptr_t)numbermap_get(&table->numbers, hash);
    if (found != 0) {
        return found - 1;
    }
    if (grow(table) != 0 ||
        numbermap_put(&table->numbers, hash, (void *)(uintptr_t)(table->count + 1)) != 0) {
        return SIZE_MAX;
    }
    table->items[table->count] = string;
    return table->count++;
}

void stringtable_free(struct stringtable *table) {
    numbermap_free(&table->numbers);
    free(table->items);
    *table = (struct stringtable){0};
}
