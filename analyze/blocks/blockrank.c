/* SPDX-License-Identifier: MIT */
/* blockrank.c: see blockrank.h. */
#include "analyze/blocks/blockrank.h"

#include "analyze/base/job.h"

/* What is ranked by, the greater the sooner. */
static uint64_t blockrank_key_of(const struct blockrank *rank, const struct life *life) {
    uint64_t until = life->death_ns != LIFE_ALIVE ? life->death_ns : rank->end_ns;
    switch (rank->order) {
    case DETAIL_LARGEST:
        return life->size;
    case DETAIL_OLDEST:
        return until > life->birth_ns ? until - life->birth_ns : 0;
    default: /* by time, not by place: streams come one after another in a window (timeorder.h) */
        return UINT64_MAX - life->birth_ns;
    }
}

static bool blockrank_is_before(const struct blockrank *rank, const struct life *left,
                                const struct life *right) {
    uint64_t a = blockrank_key_of(rank, left);
    uint64_t b = blockrank_key_of(rank, right);
    return a != b ? a > b : left->birth_order < right->birth_order;
}

static void blockrank_swap(struct life *left, struct life *right) {
    struct life kept = *left;
    *left = *right;
    *right = kept;
}

/* Downwards from the top as long as a child comes later. */
static void sink(struct blockrank *rank, size_t count) {
    size_t at = 0;
    for (;;) {
        size_t last = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            if (blockrank_is_before(rank, &rank->lives[last], &rank->lives[child])) {
                last = child;
            }
        }
        if (last == at) {
            return;
        }
        blockrank_swap(&rank->lives[at], &rank->lives[last]);
        at = last;
    }
}

static void rise(struct blockrank *rank, size_t at) {
    while (at != 0 && blockrank_is_before(rank, &rank->lives[(at - 1) / 2], &rank->lives[at])) {
        blockrank_swap(&rank->lives[(at - 1) / 2], &rank->lives[at]);
        at = (at - 1) / 2;
    }
}

void blockrank_start(struct blockrank *rank, enum detail_order order, size_t limit,
                     uint64_t end_ns) {
    *rank = (struct blockrank){.limit = limit, .order = order, .end_ns = end_ns};
    rank->lives = job_array(limit, sizeof *rank->lives);
}

void blockrank_add(struct blockrank *rank, const struct life *life) {
    if (rank->count < rank->limit) {
        rank->lives[rank->count] = *life;
        rise(rank, rank->count++);
    } else if (rank->limit != 0 && blockrank_is_before(rank, life, &rank->lives[0])) {
        rank->lives[0] = *life;
        sink(rank, rank->count);
    }
}

struct life *blockrank_take(struct blockrank *rank, size_t *count) {
    struct life *lives = rank->lives;
    for (size_t left = rank->count; left > 1; left--) {
        blockrank_swap(&rank->lives[0], &rank->lives[left - 1]);
        sink(rank, left - 1);
    }
    *count = rank->count;
    rank->lives = NULL;
    rank->count = 0;
    return lives;
}
