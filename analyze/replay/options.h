/* SPDX-License-Identifier: MIT */
/*
 * options.h: what whoever has a recording replayed wants to know meanwhile, and how much of it.
 *
 * Called by everything that goes through a recording. Start from {0}.
 */
#ifndef ANALYZE_REPLAY_OPTIONS_H
#define ANALYZE_REPLAY_OPTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replay_options {
    void (*progress)(void *context, uint64_t done, uint64_t total); /* events; NULL: none */
    void *context;
    uint64_t slice_events;     /* the least of a slice of the index (index.h); 0: as is best */
    const atomic_bool *cancel; /* the pass ends early once it is true; NULL: never */
    bool is_alone;             /* no second thread reads ahead */
    uint64_t until_ns; /* of passes over single blocks (lives.h): it ends when all that is left
                          happened at this time or behind it, as if the recording ended there; 0:
                          never */
};

/* What a pass returns that was cancelled. */
#define REPLAY_CANCELLED (-2)

static inline bool replay_is_cancelled(const struct replay_options *options) {
    return options->cancel != NULL && atomic_load(options->cancel);
}

#endif
