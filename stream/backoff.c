/* SPDX-License-Identifier: MIT */
/* backoff.c: see backoff.h. */
#include "stream/backoff.h"

#include "collect/clock.h"

#include <sys/random.h>

uint64_t backoff_next(uint64_t *backoff_ns) {
    uint64_t now = *backoff_ns;
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) {
        random = (uint32_t)clock_now_ns();
    }
    *backoff_ns = now * 2 < BACKOFF_MOST ? now * 2 : BACKOFF_MOST;
    return now / 2 + now / 2 * (random % 1024) / 1024;
}
