/* SPDX-License-Identifier: MIT */
/* sort.c: a radix sort, least digit first. See sort.h. */
#include "analyze/base/sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGIT_BITS = 11,
    DIGITS = 1 << DIGIT_BITS,
    STRETCH = 1 << 16, /* keys between two looks at whether to go on */
};

static size_t digit_of(struct sort_key key, unsigned shift) {
    return (size_t)(key.key >> shift) & (DIGITS - 1);
}

static bool sort_is_cancelled(const atomic_bool *cancel, size_t i) {
    return cancel != NULL && i % STRETCH == 0 && atomic_load(cancel);
}

/* By one digit. false: cancelled. */
static bool sort_digit(const struct sort_key *from, struct sort_key *to, size_t count,
                       unsigned shift, const atomic_bool *cancel) {
    size_t starts[DIGITS] = {0};
    size_t start = 0;
    for (size_t i = 0; i < count; i++) {
        if (sort_is_cancelled(cancel, i)) {
            return false;
        }
        starts[digit_of(from[i], shift)]++;
    }
    for (size_t digit = 0; digit < DIGITS; digit++) {
        size_t items = starts[digit];
        starts[digit] = start;
        start += items;
    }
    for (size_t i = 0; i < count; i++) {
        if (sort_is_cancelled(cancel, i)) {
            return false;
        }
        to[starts[digit_of(from[i], shift)]++] = from[i];
    }
    return true;
}

enum sort_status sort_keys(struct sort_key *keys, size_t count, const atomic_bool *cancel) {
    struct sort_key *spare = calloc(count + 1, sizeof *spare);
    struct sort_key *from = keys;
    struct sort_key *to = spare;
    uint64_t bits = 0;
    bool goes_on = true;
    if (spare == NULL) {
        return SORT_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        bits |= keys[i].key;
    }
    for (unsigned shift = 0; goes_on && shift < 64 && bits >> shift != 0; shift += DIGIT_BITS) {
        struct sort_key *sorted = to;
        goes_on = sort_digit(from, to, count, shift, cancel);
        to = from;
        from = sorted;
    }
    if (goes_on && from != keys) {
        memcpy(keys, from, count * sizeof *keys);
    }
    free(spare);
    return goes_on ? SORT_DONE : SORT_CANCELLED;
}
