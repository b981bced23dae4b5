/* SPDX-License-Identifier: MIT */
/* jumpingclock.c: preloaded, the clock on the wall is set forward by a day and back by two, over
 * and over: it is another one each time that it is looked at. CLOCK_MONOTONIC is as ever. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { DAY_S = 86400 };

static time_t jump(void) {
    static atomic_uint looks;
    return atomic_fetch_add(&looks, 1) % 2 == 0 ? DAY_S : -DAY_S;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec += jump();
    }
    return failed;
}

__attribute__((visibility("default"))) time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to != NULL) {
        *to = now.tv_sec;
    }
    return now.tv_sec;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict to,
                                                        void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    to->tv_sec = now.tv_sec;
    to->tv_usec = now.tv_nsec / 1000;
    return 0;
}
