/* SPDX-License-Identifier: MIT */
/* beside_clock.c: a library that is preloaded and tells another time, as libfaketime does: its
 * clock takes a lock and allocates under it. A call of the runtime's from inside of that allocation
 * would wait for itself. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result;
    pthread_mutex_lock(&lock);
    free(malloc(100));
    result = syscall(SYS_clock_gettime, clock, now);
    now->tv_sec -= 1000000000; /* decades */
    pthread_mutex_unlock(&lock);
    return result;
}

int clock_getres(clockid_t clock, struct timespec *step) {
    pthread_mutex_lock(&lock);
    free(malloc(100));
    *step = (struct timespec){.tv_sec = 5};
    pthread_mutex_unlock(&lock);
    return 0;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec fine;
    clock_gettime(CLOCK_REALTIME, &fine);
    *now = (struct timeval){fine.tv_sec, fine.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *seconds) {
    struct timespec fine;
    clock_gettime(CLOCK_REALTIME, &fine);
    return seconds != NULL ? *seconds = fine.tv_sec : fine.tv_sec;
}
