/* SPDX-License-Identifier: MIT */
/*
 * clock.h: the kernel's clocks, and: has time passed since? One load tells, however long nothing
 * happened before.
 *
 * Clocks are read straight from the kernel: by its own code in the process (the vDSO, man 7 vdso),
 * else by a system call. The C library's clock_gettime may be another's (libfaketime's tells
 * another time, takes locks and allocates), so nothing of ours calls that. Async-signal-safe, at
 * any time, in any thread; errno stays.
 *
 * The kernel keeps the time of its coarse clocks in a page that every process can read (vDSO data)
 * and writes it at each of its timer interrupts, every 1 to 10 ms (CLOCK_MONOTONIC_COARSE's
 * resolution). A word of that page is what threads watch: who finds it unchanged knows that less
 * than an interrupt's time has passed since it looked at the clock. Where there is no such word
 * (no vDSO, a time namespace, another kernel's page) threads watch a word of ours, which tells them
 * to look at the clock each time.
 *
 * The word is looked for at the start and in forked children.
 */
#ifndef RUNTIME_BASE_CLOCK_H
#define RUNTIME_BASE_CLOCK_H

#include "runtime/base/compiler.h"

#include <time.h>

/* Seconds and nanoseconds, as the kernel's words have them: not always the C library's struct
 * timespec. 0; else the kernel or a filter refuses. */
struct vdso_time {
    long s, ns;
};
int vdso_clock(int clock, struct vdso_time *now);

/* The function of this name in the vDSO whose ELF header is mapped at `vdso`; NULL: it has none. */
void *vdso_symbol(const void *vdso, const char *name);

/* 8 bytes at any address: see clock.c. */
typedef uint64_t __attribute__((aligned(1), may_alias)) clock_word;

/* The word to watch. */
const volatile clock_word *clock_find(void);
/* In a forked child, which may have another time than its parent: `word`, if it still can be
 * watched, or what can be. */
const volatile clock_word *clock_check(const volatile clock_word *word);

/* What the clocks CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE and CLOCK_BOOTTIME say. */
struct clock_moment {
    struct timespec realtime, monotonic, boot;
};
/* The word in a page that holds these times, or NULL. */
const volatile clock_word *clock_find_in(uintptr_t page, const struct clock_moment *now);

extern const volatile clock_word clock_unknown; /* clock_find() found nothing to watch */

/* What a thread notes that is about to look at the clock: it need not do so again while it reads
 * the same. */
INLINE uint64_t clock_seen(const volatile clock_word *word) {
    uint64_t value = *word;
    return UNLIKELY(word == &clock_unknown) ? ~value : value;
}

#endif
