/* SPDX-License-Identifier: MIT */
/* difflines.c: pairs the lines of one function in two builds. See diffmatch_lines(). */
#include "analyze/report/diffmatch.h"

#include <stdlib.h>

enum { MOST_STEPS = 1 << 24 }; /* of work and of memory; beyond, lines are paired by place */

static uint64_t distance(int64_t left, int64_t right) {
    return left < right ? (uint64_t)right - (uint64_t)left : (uint64_t)left - (uint64_t)right;
}

static void pair_by_place(uint32_t *to, size_t left_count, size_t right_count) {
    for (size_t i = 0; i < left_count; i++) {
        to[i] = i < right_count ? (uint32_t)i : DIFFMATCH_NONE;
    }
}

static void pair_equal(const uint64_t *left, size_t left_count, const uint64_t *right,
                       size_t right_count, uint32_t *to) {
    size_t at = 0;
    for (size_t i = 0; i < left_count; i++) {
        while (at < right_count && right[at] < left[i]) {
            at++;
        }
        to[i] = at < right_count && right[at] == left[i] ? (uint32_t)at : DIFFMATCH_NONE;
    }
}

/* ---- With a tolerance: as many as can, then as near as can ---- */

/* The best that the first i lines of one and the first j of the other can do. */
struct best {
    uint32_t pairs;
    uint64_t distance;
};

static bool is_better(struct best a, struct best b) {
    return a.pairs > b.pairs || (a.pairs == b.pairs && a.distance < b.distance);
}

static int pair_within(const uint64_t *left, size_t left_count, const uint64_t *right,
                       size_t right_count, uint64_t tolerance, uint32_t *to) {
    size_t width = right_count + 1;
    struct best *best = calloc((left_count + 1) * width, sizeof *best);
    if (best == NULL) {
        return -1;
    }
    for (size_t i = 1; i <= left_count; i++) {
        for (size_t j = 1; j <= right_count; j++) {
            struct best *here = &best[i * width + j];
            struct best both = best[(i - 1) * width + j - 1];
            uint64_t apart = distance((int64_t)left[i - 1], (int64_t)right[j - 1]);
            both.pairs++;
            both.distance += apart;
            *here = is_better(best[(i - 1) * width + j], best[i * width + j - 1])
                        ? best[(i - 1) * width + j]
                        : best[i * width + j - 1];
            *here = apart <= tolerance && is_better(both, *here) ? both : *here;
        }
    }
    for (size_t i = left_count, j = right_count; i > 0;) {
        struct best here = best[i * width + j];
        if (!is_better(here, best[(i - 1) * width + j])) {
            to[--i] = DIFFMATCH_NONE;
        } else if (!is_better(here, best[i * width + j - 1])) {
            j--;
        } else {
            to[--i] = (uint32_t)--j;
        }
    }
    free(best);
    return 0;
}

/* ---- Without: all of the shorter list, shifted as evenly as can be ---- */

/* The cost of pairing the line at `few` with that at `many`, all before it being paired: how far
 * the first is shifted, and by how much each one's shift differs from that of the one before. */
struct shift {
    uint64_t cost;
    uint32_t before; /* the partner of the line before */
};

static int64_t shift_of(const uint64_t *few, size_t i, const uint64_t *many, size_t j) {
    return (int64_t)many[j] - (int64_t)few[i];
}

static struct shift cheapest(const struct shift *above, const uint64_t *few, size_t i,
                             const uint64_t *many, size_t j) {
    struct shift best = {UINT64_MAX, 0};
    for (size_t k = i - 1; k < j; k++) {
        uint64_t change = distance(shift_of(few, i, many, j), shift_of(few, i - 1, many, k));
        if (above[k].cost + change < best.cost) {
            best = (struct shift){above[k].cost + change, (uint32_t)k};
        }
    }
    return best;
}

/* partner[i]: the place of few[i]'s. few_count <= many_count, neither is 0. */
static int pair_evenly(const uint64_t *few, size_t few_count, const uint64_t *many,
                       size_t many_count, uint32_t *partner) {
    struct shift *table = calloc(few_count * many_count, sizeof *table);
    size_t last = few_count - 1;
    size_t best = last;
    if (table == NULL) {
        return -1;
    }
    for (size_t j = 0; j < many_count; j++) {
        table[j].cost = distance(shift_of(few, 0, many, j), 0);
    }
    for (size_t i = 1; i < few_count; i++) {
        for (size_t j = i; j < many_count; j++) {
            table[i * many_count + j] = cheapest(&table[(i - 1) * many_count], few, i, many, j);
        }
    }
    for (size_t j = last; j < many_count; j++) {
        best = table[last * many_count + j].cost < table[last * many_count + best].cost ? j : best;
    }
    for (size_t i = few_count; i-- > 0;) {
        partner[i] = (uint32_t)best;
        best = table[i * many_count + best].before;
    }
    free(table);
    return 0;
}

static int pair_any(const uint64_t *left, size_t left_count, const uint64_t *right,
                    size_t right_count, uint32_t *to) {
    uint32_t *partner;
    if (left_count <= right_count) {
        return pair_evenly(left, left_count, right, right_count, to);
    }
    partner = calloc(right_count, sizeof *partner);
    if (partner == NULL || pair_evenly(right, right_count, left, left_count, partner) != 0) {
        free(partner);
        return -1;
    }
    for (size_t i = 0; i < left_count; i++) {
        to[i] = DIFFMATCH_NONE;
    }
    for (size_t j = 0; j < right_count; j++) {
        to[partner[j]] = (uint32_t)j;
    }
    free(partner);
    return 0;
}

int diffmatch_lines(const uint64_t *left, size_t left_count, const uint64_t *right,
                    size_t right_count, uint64_t tolerance, uint32_t *to) {
    size_t few = left_count < right_count ? left_count : right_count;
    size_t many = left_count < right_count ? right_count : left_count;
    bool is_large = many != 0 && few * many > MOST_STEPS / many;
    if (tolerance == 0) {
        pair_equal(left, left_count, right, right_count, to);
        return 0;
    }
    if (tolerance != DIFFMATCH_ANY && few * many <= MOST_STEPS / 4) {
        return pair_within(left, left_count, right, right_count, tolerance, to);
    }
    if (few == many || few == 0 || is_large) {
        pair_by_place(to, left_count, right_count);
        return 0;
    }
    return pair_any(left, left_count, right, right_count, to);
}
