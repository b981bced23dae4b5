/* SPDX-License-Identifier: MIT */
/* numbering.c: see numbering.h. */
#include "analyze/export/numbering.h"

#include "analyze/base/array.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

size_t numbering_of(struct numbering *numbering, uint64_t key, bool *is_new) {
    uintptr_t number = (uintptr_t)numbermap_get(&numbering->numbers, key);
    if (is_new != NULL) {
        *is_new = number == 0;
    }
    if (number == 0) {
        number = ++numbering->count;
        numbering->out_of_memory |= numbermap_put(&numbering->numbers, key, (void *)number) != 0;
    }
    return number;
}

size_t numbering_add(struct numbering *numbering, uint64_t key, const void *item) {
    bool is_new;
    size_t number = numbering_of(numbering, key, &is_new);
    if (is_new && array_grow(&numbering->items, &numbering->room, number - 1,
                             sizeof *numbering->items) == 0) {
        numbering->items[number - 1] = item;
    } else if (is_new) {
        numbering->count = number - 1; /* of items that are there */
        numbering->out_of_memory = true;
    }
    return number;
}

uint64_t numbering_key(const char *text) {
    return XXH3_64bits(text, strlen(text));
}

void numbering_free(struct numbering *numbering) {
    numbermap_free(&numbering->numbers);
    free(numbering->items);
    *numbering = (struct numbering){0};
}
