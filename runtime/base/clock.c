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
#include "runtime/base/vdso.h"
#include "runtime/machine/machine.h"

#include <fcntl.h>
#include <sys/auxv.h>

const volatile clock_word clock_unknown;

enum {
    LEAST_PAGE_BYTES =
        4096,       /* whatever the size of a page is, the times lie in the first of these */
    MOST_PAGES = 8, /* below the vDSO; 6 as of Linux 6.18 */
    TRIES = 3,      /* an interrupt may come in between */
    LINE_BYTES = 64,
    SKIPPED_BYTES = 2, /* the lowest of the nanoseconds */
    SLOWEST_NS = 10 * 1000 * 1000,
};

static struct timespec read_clock(int clock) {
    struct vdso_time now = {0};
    vdso_clock(clock, &now);
    return (struct timespec){.tv_sec = now.s, .tv_nsec = now.ns};
}

static void take_moment(struct clock_moment *moment) {
    moment->realtime = read_clock(CLOCK_REALTIME_COARSE);
    moment->monotonic = read_clock(CLOCK_MONOTONIC_COARSE);
    moment->boot = read_clock(CLOCK_BOOTTIME);
}

/* Nanoseconds and, right behind them, the next clock's seconds. */
static int matches(const volatile uint64_t *at, const struct clock_moment *now) {
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

const volatile clock_word *clock_find_in(uintptr_t page, const struct clock_moment *now) {
    const volatile clock_word *found = NULL;
    uintptr_t end = page + LEAST_PAGE_BYTES - 2 * sizeof(uint64_t);
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

/* In the pages below the vDSO, some of which are for other kinds of machines and cannot be read. */
static const volatile clock_word *find_below(uintptr_t vdso, const struct clock_moment *now) {
    uintptr_t page_bytes = getauxval(AT_PAGESZ);
    const volatile clock_word *found = NULL;
    for (uintptr_t i = 1; i <= MOST_PAGES && found == NULL; i++) {
        uintptr_t page = vdso - i * page_bytes;
        if (sys_readable((const void *)page)) {
            found = clock_find_in(page, now);
        }
    }
    return found;
}

/* --- valgrind hides the vDSO from the program, but leaves its data where they are --------------
 */

/* Reads lines of /proc/self/maps. */
struct maps_reader {
    uintptr_t start; /* of the present line's range */
    int in_start;
    uint64_t last_characters;
};

/* 1: a line is over, and it was that of "[vvar]", whose start is known. */
static int read_character(struct maps_reader *reader, char c) {
    const uint64_t name = UINT64_C(0x5b767661725d); /* its characters */
    int is_found = c == '\n' && reader->last_characters << 16 == name << 16;
    if (is_found) {
        return 1;
    }
    if (c == '\n') {
        *reader = (struct maps_reader){.in_start = 1};
    } else if (reader->in_start && c != '-') {
        reader->start = reader->start << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    } else {
        reader->in_start = 0;
    }
    reader->last_characters = reader->last_characters << 8 | (unsigned char)c;
    return 0;
}

/* 0: there is none. */
static uintptr_t find_data_page(void) {
    struct maps_reader reader = {.in_start = 1};
    char buffer[1024];
    long fd = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    long size = fd < 0 ? 0 : sys_read((int)fd, buffer, sizeof buffer);
    int is_found = 0;
    while (size > 0 && !is_found) {
        for (long i = 0; i < size && !is_found; i++) {
            is_found = read_character(&reader, buffer[i]);
        }
        size = is_found ? 0 : sys_read((int)fd, buffer, sizeof buffer);
    }
    if (fd >= 0) {
        sys_close((int)fd);
    }
    return is_found ? reader.start : 0;
}

/* Memcheck would call each look at the page an error of the program: MAKE_MEM_DEFINED. */
static void declare_readable(uintptr_t page) {
    const uint64_t request[6] = {UINT64_C(0x4d430002), page, LEAST_PAGE_BYTES};
    if (MACHINE_ASKS_VALGRIND) {
        machine_ask_valgrind(request);
    }
}

/* ---------------------------------------------------------------------------------------------- */

static int is_coarse_clock_fine(void) {
    return sys_clock_step_ns(CLOCK_MONOTONIC_COARSE) <= SLOWEST_NS;
}

const volatile clock_word *clock_find(void) {
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    uintptr_t page = vdso == 0 ? find_data_page() : 0;
    if (page != 0) {
        declare_readable(page);
    }
    for (int i = 0; i < TRIES && is_coarse_clock_fine(); i++) {
        const volatile clock_word *found = NULL;
        struct clock_moment now;
        take_moment(&now);
        if (vdso != 0) {
            found = find_below(vdso, &now);
        } else if (page != 0) {
            found = clock_find_in(page, &now);
        }
        if (found != NULL) {
            return found;
        }
    }
    return &clock_unknown;
}

const volatile clock_word *clock_check(const volatile clock_word *word) {
    uintptr_t at = (uintptr_t)word - SKIPPED_BYTES;
    for (int i = 0; i < TRIES && word != &clock_unknown; i++) {
        struct clock_moment now;
        take_moment(&now);
        if (matches((const volatile uint64_t *)at, &now)) {
            return word;
        }
    }
    return &clock_unknown;
}
