/* SPDX-License-Identifier: MIT */
/* wrap.h: signed sums that wrap as unsigned ones do: a damaged file may hold any sizes. Any thread.
 * Called by analyze/model. */
#ifndef ANALYZE_MODEL_WRAP_H
#define ANALYZE_MODEL_WRAP_H

#include <stdint.h>

static inline int64_t wrap_add(int64_t left, int64_t right) {
    return (int64_t)((uint64_t)left + (uint64_t)right);
}

static inline int64_t wrap_subtract(int64_t left, int64_t right) {
    return (int64_t)((uint64_t)left - (uint64_t)right);
}

#endif
