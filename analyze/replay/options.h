/* SPDX-License-Identifier: MIT */
/*
 * options.h: what whoever has a recording replayed wants to know meanwhile, and how much of it.
 *
 * Called by everything that goes through a recording. Start from {0}.
 */
#ifndef ANALYZE_REPLAY_OPTIONS_H
#define ANALYZE_REPLAY_OPTIONS_H

#include <stdatomic.h>
#include <stdint.h>

struct replay_options {
    void (*progress)(void *context, uint64_t done, uint64_t total); /* events; NULL: none */
    void *context;
    uint64_t slice_events; /* the least of a slice of the index (index.h); 0: as is best */
    /* Of passes over lives (lives.h) only: */
    const atomic_bool *cancel; /* the pass ends early once it is true; NULL: never */
    uint64_t until_ns; /* ... and when all that is left happened at this time or behind it, as if
                          the recording ended there; 0: never */
};

#endif
