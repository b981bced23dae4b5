/* SPDX-License-Identifier: MIT */
/* insides.c: see insides.h. */
#include "analyze/blocks/insides.h"

#include "analyze/base/job.h"

static struct inside *insides_look(struct insides *insides, size_t place) {
    insides->looks++;
    return &insides->items[place - 1];
}

/* A place + 1. */
static size_t insides_take_place(struct insides *insides) {
    size_t place = insides->free;
    if (place != 0) {
        insides->free = insides_look(insides, place)->below;
        return place;
    }
    job_grow(&insides->items, &insides->room, insides->used, sizeof *insides->items);
    return ++insides->used;
}

static void insides_give_back(struct insides *insides, size_t place) {
    *insides_look(insides, place) = (struct inside){.below = insides->free};
    insides->free = place;
}

void insides_add(struct insides *insides, uint64_t start, uint64_t end) {
    size_t place = insides_take_place(insides);
    *insides_look(insides, place) =
        (struct inside){start, end, (size_t)(uintptr_t)numbermap_get(&insides->by_start, start)};
    numbermap_set(&insides->by_start, start, (void *)(uintptr_t)place);
    insides->pages += end - start;
}

void insides_remove(struct insides *insides, uint64_t start) {
    size_t place = (size_t)(uintptr_t)numbermap_get(&insides->by_start, start);
    struct inside gone;
    if (place == 0) {
        return;
    }
    gone = *insides_look(insides, place);
    insides->pages -= gone.end - gone.start;
    insides_give_back(insides, place);
    if (gone.below != 0) {
        numbermap_set(&insides->by_start, start, (void *)(uintptr_t)gone.below);
    } else {
        numbermap_take(&insides->by_start, start);
    }
}
