/* SPDX-License-Identifier: MIT */
/*
 * sampling.h: which allocations are picked where only a sample is kept, and what they stand for.
 *
 * Points lie on the line of all bytes that a thread allocates, at random: the distance from one to
 * the next is exponential with the mean asked for (a Poisson process). An allocation that holds a
 * point is taken. One of s bytes is taken with p = 1 - exp(-s / mean), and stands for s / p bytes:
 * so every sum over what was taken has the true sum as its mean, whatever the sizes are.
 *
 * Called by entry/event_record.c for recordings and by entry/sampled_mode.c for profiles. The state
 * belongs to one thread.
 */
#ifndef RUNTIME_RECORD_SAMPLING_H
#define RUNTIME_RECORD_SAMPLING_H

#include "runtime/base/compiler.h"

/* until > 0: bytes to the next point, drawn for this mean; all zeros: not drawn yet */
struct sampling {
    uint64_t mean;
    int64_t until;
    uint64_t random; /* never 0 once it was seeded */
};

void sampling_seed(struct sampling *sampling, uint64_t seed);

/* With which probability so many bytes hold a point: 1 - exp(-bytes / mean). */
double sampling_probability(uint64_t bytes, uint64_t mean);
/* A whole number whose mean is `value`: rounded up or down by chance. */
uint64_t sampling_round(struct sampling *sampling, double value);

/* The rare half: a point was passed, or the mean is another one now. */
uint64_t sampling_take_slow(struct sampling *sampling, uint64_t size, uint64_t mean);

/* An allocation of `size` bytes, `mean` != 0. The bytes it stands for, or 0: it is left out. (One
 * of 0 bytes stands for none in either case.) */
INLINE uint64_t sampling_take(struct sampling *sampling, uint64_t size, uint64_t mean) {
    if (LIKELY(sampling->mean == mean && sampling->until > (int64_t)size)) {
        sampling->until -= (int64_t)size;
        return 0;
    }
    return sampling_take_slow(sampling, size, mean);
}

#endif
