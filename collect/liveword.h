/* SPDX-License-Identifier: MIT */
/*
 * liveword.h: a word in the region of a running program that several processes read and write: what
 * was written before it is seen by who has seen it.
 *
 * Called by collect. Any thread.
 */
#ifndef COLLECT_LIVEWORD_H
#define COLLECT_LIVEWORD_H

#include <stdint.h>

static inline uint64_t liveword_load(const uint64_t *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void liveword_store(uint64_t *word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

#endif
