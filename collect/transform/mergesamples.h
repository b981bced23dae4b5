/* SPDX-License-Identifier: MIT */
/*
 * mergesamples.h: what several processes used together, from what was sampled of each.
 *
 * Called by collect/mergewrite. One thread.
 */
#ifndef COLLECT_TRANSFORM_MERGESAMPLES_H
#define COLLECT_TRANSFORM_MERGESAMPLES_H

#include "collect/transform/mergewrite.h"

/* Writes a block of samples: at each moment of any process's the sum of the latest ones of all that
 * still ran. Memory that processes share is counted in each. 0 or -1. */
int mergesamples_write(const struct mergewrite *all, struct recordfile *file, struct error *error);

#endif
