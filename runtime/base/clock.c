/* SPDX-License-Identifier: MIT */
/*
 * clock.c: finds the kernel's word in the pages below the vDSO. See clock.h.
 *
 * Their layout is the kernel's own and changes from version to version, but not what they hold: the
 * present time of CLOCK_REALTIME_COARSE and CLOCK_MONOTONIC_COARSE, each as seconds and nanoseconds
 * (8 bytes each), side by side. So the place is found by its value. The nanoseconds alone will not
 * do: timer interrupts come so regularly that they read the same again whole seconds later. The
 * word is 8 bytes that begin inside the nanoseconds of one clock and end inside the seconds of the
 * next: the higher part of the former (in steps of 65.5 us) and the lowest 16 bits of the latter.
 */
#define _GNU_SOURCE
#include "runtime/base/clock.h"

#include "runtime/base/sys.h"

#include <sys/auxv.h>

const volatile clock_word clock_unknown;

enum {
    PAGE_BYTES = 4096,
    MOST_PAGES = 8, /* below the vDSO; 6 as of Linux 6.18 */
    TRIES = 3,      /* an interrupt may come in between */
    LINE_BYTES = 64,
    SKIPPED_BYTES = 2, /* the lowest of the nanoseconds */
    SLOWEST_NS = 10 * 1000 * 1000,
};

/* What is to be found: nanoseconds and, right behind them, the next clock's seconds. */
struct moment {
    struct timespec realtime, monotonic, boot;
};

static void take_moment(struct moment *moment) {
    clock_gettime(CLOCK_REALTIME_COARSE, &moment->realtime);
    clock_gettime(CLOCK_MONOTONIC_COARSE, &moment->monotonic);
    clock_gettime(CLOCK_BOOTTIME, &moment->boot);
}

static int matches(const volatile uint64_t *at, const struct moment *now) {
    return (at[0] == (uint64_t)now->realtime.tv_nsec && at[1] == (uint64_t)now->monotonic.tv_sec) ||
           (at[0] == (uint64_t)now->monotonic.tv_nsec && at[1] == (uint64_t)now->boot.tv_sec);
}

static const volatile clock_word *word_at(uintptr_t at) {
    return (const volatile clock_word *)(at + SKIPPED_BYTES);
}

/* A word in two cache lines costs a little more than one in one. */
static int is_in_one_line(uintptr_t at) {
    return (at + SKIPPED_BYTES) % LINE_BYTES <= LINE_BYTES - sizeof(clock_word);
}

static const volatile clock_word *find_in_page(uintptr_t page, const struct moment *now) {
    const volatile clock_word *found = NULL;
    uintptr_t end = page + PAGE_BYTES - 2 * sizeof(uint64_t);
    for (uintptr_t at = page; at <= end; at += sizeof(uint64_t)) {
        if (matches((const volatile uint64_t *)at, now)) {
            found = word_at(at);
            if (is_in_one_line(at)) {
                break;
            }
        }
    }
    return found;
}

/* Some of the pages are for other kinds of machines, and cannot be read. */
static const volatile clock_word *find_below(uintptr_t vdso) {
    struct moment now;
    take_moment(&now);
    for (uintptr_t i = 1; i <= MOST_PAGES; i++) {
        uintptr_t page = vdso - i * PAGE_BYTES;
        const volatile clock_word *found =
            sys_readable((const void *)page) ? find_in_page(page, &now) : NULL;
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

static int is_coarse_clock_fine(void) {
    struct timespec step;
    return clock_getres(CLOCK_MONOTONIC_COARSE, &step) == 0 && step.tv_sec == 0 &&
           step.tv_nsec <= SLOWEST_NS;
}

const volatile clock_word *clock_find(void) {
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (vdso > MOST_PAGES * PAGE_BYTES && is_coarse_clock_fine()) {
        for (int i = 0; i < TRIES; i++) {
            const volatile clock_word *found = find_below(vdso);
            if (found != NULL) {
                return found;
            }
        }
    }
    return &clock_unknown;
}

const volatile clock_word *clock_check(const volatile clock_word *word) {
    uintptr_t at = (uintptr_t)word - SKIPPED_BYTES;
    for (int i = 0; i < TRIES && word != &clock_unknown; i++) {
        struct moment now;
        take_moment(&now);
        if (matches((const volatile uint64_t *)at, &now)) {
            return word;
        }
    }
    return &clock_unknown;
}
