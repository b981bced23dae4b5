/* SPDX-License-Identifier: MIT */
/* predict.c: memory of predict.h. */
#include "analyze/read/predict.h"

#include "analyze/base/array.h"

#include <stdlib.h>

int predict_grow(struct predict *predict, uint64_t slot) {
    enum { LEAST = 1024 };
    size_t slots = predict->slot_capacity;
    size_t links = predict->slot_capacity;
    size_t wanted = slot < LEAST ? LEAST : slot + 1;
    if (array_reserve(&predict->slots, &slots, wanted, sizeof *predict->slots) != 0 ||
        array_reserve(&predict->links, &links, wanted, sizeof *predict->links) != 0) {
        return -1;
    }
    predict->slot_capacity = slots;
    return 0;
}

int predict_start(struct predict *predict, uint32_t thread, uint64_t first_number) {
    if (predict->slot_capacity == 0 && predict_grow(predict, 0) != 0) {
        return -1;
    }
    predict->slots[0] = (struct predict_slot){0};
    predict->links[0] = (struct predict_link){0};
    predict->slot_count = 1;
    predict->sites.count = predict->sites.last = 0;
    predict->places.count = predict->places.last = 0;
    predict->thread = thread;
    predict->first_number = first_number;
    predict->newest = predict->last = first_number - 1;
    predict->last_slot = 0;
    predict->frontier = 0;
    memset(predict->top, 0, sizeof predict->top);
    memset(predict->foreign, 0, sizeof predict->foreign);
    return 0;
}

void predict_end(struct predict *predict) {
    free(predict->sites.site);
    free(predict->places.site);
    free(predict->slots);
    free(predict->links);
    *predict = (struct predict){0};
}

int64_t predict_add_site(struct predict_sites *sites, const struct predict_site *site) {
    size_t room = sites->capacity;
    if (array_grow(&sites->site, &room, sites->count, sizeof *sites->site) != 0) {
        return -1;
    }
    sites->capacity = (uint32_t)room;
    sites->site[sites->count] = *site;
    sites->site[sites->count].next = sites->count;
    return sites->count++;
}
