/* SPDX-License-Identifier: MIT */
/*
 * backoff.h: how long to wait before a lost connection is tried again.
 *
 * Called by stream/sender and stream/puller. Any thread.
 */
#ifndef STREAM_BACKOFF_H
#define STREAM_BACKOFF_H

#include <stdint.h>

#define BACKOFF_LEAST (UINT64_C(250) * 1000000)
#define BACKOFF_MOST  (UINT64_C(30) * 1000000000)

/* Between half of `backoff` and all of it: many that lost the same machine are not to come back at
 * once. The next time is twice as long. */
uint64_t backoff_next(uint64_t *backoff_ns);

#endif
