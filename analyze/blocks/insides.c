/* SPDX-License-Identifier: MIT */
/* insides.c: see insides.h. */
#include "analyze/blocks/insides.h"

#include "analyze/base/array.h"

#include <stdlib.h>

static struct inside *look(struct insides *insides, size_t place) {
    insides->looks++;
    return &insides->items[place - 1];
}

/* A place + 1; 0: out of memory. */
static size_t take_place(struct insides *insides) {
    size_t place = insides->free;
    if (place != 0) {
        insides->free = look(insides, place)->below;
        return place;
    }
    if (array_grow(&insides->items, &insides->room, insides->used, sizeof *insides->items) != 0) {
        return 0;
    }
    return ++insides->used;
}

static void give_back(struct insides *insides, size_t place) {
    *look(insides, place) = (struct inside){.below = insides->free};
    insides->free = place;
}

static int set_last(struct insides *insides, uint64_t start, size_t place) {
    if (place == 0) {
        numbermap_take(&insides->by_start, start);
        return 0;
    }
    return numbermap_put(&insides->by_start, start, (void *)(uintptr_t)place);
}

int insides_add(struct insides *insides, uint64_t start, uint64_t end) {
    size_t place = take_place(insides);
    if (place == 0) {
        return -1;
    }
    *look(insides, place) =
        (struct inside){start, end, (size_t)(uintptr_t)numbermap_get(&insides->by_start, start)};
    if (set_last(insides, start, place) != 0) {
        give_back(insides, place);
        return -1;
    }
    insides->pages += end - start;
    return 0;
}

int insides_remove(struct insides *insides, uint64_t start) {
    size_t place = (size_t)(uintptr_t)numbermap_get(&insides->by_start, start);
    struct inside gone;
    if (place == 0) {
        return 0;
    }
    gone = *look(insides, place);
    insides->pages -= gone.end - gone.start;
    give_back(insides, place);
    return set_last(insides, start, gone.below);
}

void insides_free(struct insides *insides) {
    free(insides->items);
    numbermap_free(&insides->by_start);
    *insides = (struct insides){0};
}
