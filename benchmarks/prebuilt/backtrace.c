/* SPDX-License-Identifier: MIT */
/*
 * backtrace.c: preloaded, takes a backtrace of each allocation by libunwind's fast trace and drops
 * it: less than any profiler that takes its stacks from there can cost. Run by benchmarks/run.
 */
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <stddef.h>

enum { MOST_FRAMES = 2048 };

#define PUBLIC __attribute__((visibility("default")))

/* What libc calls its own ones, so that nothing must be looked up before the first allocation. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);

static _Thread_local int inside; /* libunwind allocates, too */
static _Thread_local void *frames[MOST_FRAMES];

static void take_backtrace(void) {
    if (!inside) {
        inside = 1;
        unw_backtrace(frames, MOST_FRAMES);
        inside = 0;
    }
}

PUBLIC void *malloc(size_t size) {
    take_backtrace();
    return __libc_malloc(size);
}

PUBLIC void *calloc(size_t count, size_t size) {
    take_backtrace();
    return __libc_calloc(count, size);
}

PUBLIC void *realloc(void *block, size_t size) {
    take_backtrace();
    return __libc_realloc(block, size);
}
