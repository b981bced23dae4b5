/* SPDX-License-Identifier: MIT */
/* functiontable.c: see functiontable.h. */
#include "analyze/export/functiontable.h"

#include <stdlib.h>

static uint64_t key_of(const struct functiontable *table, const struct names_frame *frame) {
    return table->by_line ? frame->place_key : frame->function_key;
}

static int grow(struct functiontable *table) {
    size_t capacity = table->capacity != 0 ? table->capacity * 2 : 256;
    const struct names_frame **grown;
    if (table->count < table->capacity) {
        return 0;
    }
    grown = realloc(table->frames, capacity * sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    table->frames = grown;
    table->capacity = capacity;
    return 0;
}

int functiontable_add_frame(struct functiontable *table, const struct names_frame *frame) {
    uint64_t key = key_of(table, frame);
    if (numbermap_get(&table->numbers, key) != NULL) {
        return 0;
    }
    if (grow(table) != 0 ||
        numbermap_put(&table->numbers, key, (void *)(uintptr_t)(table->count + 1)) != 0) {
        return -1;
    }
    table->frames[table->count++] = frame;
    return 0;
}

int functiontable_add(struct functiontable *table, const struct calltree *tree) {
    int result = 0;
    for (size_t i = 1; result == 0 && i < tree->count; i++) {
        result = functiontable_add_frame(table, tree->calls[i].frame);
    }
    return result;
}

void functiontable_free(struct functiontable *table) {
    numbermap_free(&table->numbers);
    free(table->frames);
    *table = (struct functiontable){0};
}

size_t functiontable_number(const struct functiontable *table, const struct names_frame *frame) {
    return (uintptr_t)numbermap_get(&table->numbers, key_of(table, frame)) - 1;
}
