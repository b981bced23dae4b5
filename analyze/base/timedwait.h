/* SPDX-License-Identifier: MIT */
/*
 * timedwait.h: waits for a condition that end after so long at most. They go by CLOCK_MONOTONIC:
 * with POSIX's default, CLOCK_REALTIME, one of 100 ms lasts an hour longer if the clock is set back
 * by an hour meanwhile.
 *
 *     timedwait_init(&changed);
 *     ...
 *     struct timespec until = timedwait_until(100);
 *     pthread_cond_timedwait(&changed, &lock, &until);
 *
 * Any thread.
 */
#ifndef ANALYZE_BASE_TIMEDWAIT_H
#define ANALYZE_BASE_TIMEDWAIT_H

#include <pthread.h>
#include <time.h>

/* Instead of pthread_cond_init(). */
void timedwait_init(pthread_cond_t *condition);

/* When `ms` from now are over, as pthread_cond_timedwait() wants it of such a condition. */
struct timespec timedwait_until(unsigned ms);

#endif
