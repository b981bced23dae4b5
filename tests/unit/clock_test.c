/* SPDX-License-Identifier: MIT */
/* clock_test.c: the kernel's word is found by its value, and changes when the coarse clock does. */
#define _GNU_SOURCE
#include "runtime/base/clock.h"

#include "runtime/base/sys.h"
#include "runtime/machine/machine.h"

#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

enum { WORDS = 512 };

static uint64_t page[WORDS] __attribute__((aligned(4096)));

static const struct clock_moment noon = {
    .realtime = {1700000000, 123456789}, .monotonic = {5000, 777777777}, .boot = {5100, 888888888}};

/* Both coarse clocks and CLOCK_BOOTTIME one behind the other, as the kernel keeps them. */
static void put_times(size_t at, const struct clock_moment *now) {
    page[at] = (uint64_t)now->realtime.tv_sec;
    page[at + 1] = (uint64_t)now->realtime.tv_nsec;
    page[at + 2] = (uint64_t)now->monotonic.tv_sec;
    page[at + 3] = (uint64_t)now->monotonic.tv_nsec;
    page[at + 4] = (uint64_t)now->boot.tv_sec;
}

static const volatile clock_word *find(const struct clock_moment *now) {
    return clock_find_in((uintptr_t)page, now);
}

static void found_by_value(void **state) {
    (void)state;
    for (size_t at = 0; at + 5 <= WORDS; at++) {
        const volatile clock_word *word;
        memset(page, 0, sizeof page);
        put_times(at, &noon);
        word = find(&noon);
        assert_non_null((const void *)word);
        assert_uint_in_range((uintptr_t)word, (uintptr_t)&page[at + 1], (uintptr_t)&page[at + 4]);
        /* one of the two places does not cross a cache line */
        assert_uint_in_range((uintptr_t)word % 64, 0, 64 - sizeof *word);
    }
}

/* An interrupt later, and whole seconds later to the nanosecond. */
static void changes_with_the_time(void **state) {
    (void)state;
    for (size_t at = 0; at + 5 <= WORDS; at += 37) {
        struct clock_moment later = noon;
        struct clock_moment next_second = noon;
        const volatile clock_word *word;
        uint64_t before;
        later.realtime.tv_nsec += 1000000;
        later.monotonic.tv_nsec += 1000000;
        next_second.realtime.tv_sec++;
        next_second.monotonic.tv_sec++;
        next_second.boot.tv_sec++;
        memset(page, 0, sizeof page);
        put_times(at, &noon);
        word = find(&noon);
        before = *word;
        put_times(at, &later);
        assert_true(*word != before);
        put_times(at, &next_second);
        assert_true(*word != before);
    }
}

static void other_times_are_not_found(void **state) {
    struct clock_moment other = noon;
    (void)state;
    memset(page, 0, sizeof page);
    assert_null((const void *)find(&noon));
    put_times(40, &noon);
    other.realtime.tv_nsec++;
    other.monotonic.tv_nsec++;
    assert_null((const void *)find(&other));
    other = noon; /* the same nanoseconds, but another namespace's seconds */
    other.monotonic.tv_sec++;
    other.boot.tv_sec++;
    assert_null((const void *)find(&other));
}

static void unknown_is_always_looked_at(void **state) {
    (void)state;
    assert_true(clock_unknown != clock_seen(&clock_unknown));
    assert_ptr_equal(clock_check(&clock_unknown), &clock_unknown);
    assert_ptr_equal(clock_check((const volatile clock_word *)((uintptr_t)page + 2)),
                     &clock_unknown);
}

static uint64_t coarse_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* On this machine: between two looks the word changed if and only if the kernel's clock did. */
static void this_kernels_word(void **state) {
    const volatile clock_word *word = clock_find();
    uint64_t time_ns = coarse_ns();
    unsigned changes = 0;
    (void)state;
    if (word == &clock_unknown) {
        puts("no word of this kernel is known");
        return;
    }
    assert_ptr_equal(clock_check(word), word);
    while (changes < 20) {
        uint64_t first = *word;
        uint64_t first_ns = coarse_ns();
        uint64_t second = *word;
        uint64_t second_ns = coarse_ns();
        if (first_ns == time_ns && second_ns == time_ns) {
            assert_true(first == second);
        } else if (first_ns == time_ns) { /* the next interrupt came in between */
            assert_true(*word != first);
            changes++;
        }
        time_ns = second_ns;
    }
}

/* --- the vDSO ----------------------------------------------------------------------------------
 */

enum { VDSO_BYTES = 64 * 1024 };
static _Alignas(4096) unsigned char vdso_copy[VDSO_BYTES];

/* Tags of its dynamic section become others, as if it did not have these tables. */
static void hide_table(ElfW(Sxword) tag) {
    const ElfW(Ehdr) *file = (const ElfW(Ehdr) *)vdso_copy;
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)(vdso_copy + file->e_phoff);
    for (size_t i = 0; i < file->e_phnum; i++) {
        ElfW(Dyn) *entry = (ElfW(Dyn) *)(vdso_copy + header[i].p_offset);
        for (; header[i].p_type == PT_DYNAMIC && entry->d_tag != DT_NULL; entry++) {
            entry->d_tag = entry->d_tag == tag ? DT_DEBUG : entry->d_tag;
        }
    }
}

/* Newer kernels have but one of the two hash tables, which one depends on the machine. */
static void vdso_by_either_table(void **state) {
    const unsigned char *vdso = (const unsigned char *)getauxval(AT_SYSINFO_EHDR);
    const unsigned char *function = vdso != NULL ? vdso_symbol(vdso, MACHINE_VDSO_CLOCK) : NULL;
    const ElfW(Sxword) tags[] = {DT_HASH, DT_GNU_HASH};
    size_t found = 0;
    (void)state;
    if (vdso == NULL) {
        puts("this kernel or emulator has no vDSO");
        return;
    }
    assert_non_null(function);
    assert_true(function > vdso && function < vdso + VDSO_BYTES);
    assert_null(vdso_symbol(vdso, "no_such_function"));
    for (size_t i = 0; i < 2; i++) {
        size_t pages = 0;
        for (; pages < VDSO_BYTES && sys_readable(vdso + pages); pages += 4096) {
            memcpy(vdso_copy + pages, vdso + pages, 4096);
        }
        hide_table(tags[i]);
        const unsigned char *copied = vdso_symbol(vdso_copy, MACHINE_VDSO_CLOCK);
        assert_true(copied == NULL || copied - vdso_copy == function - vdso);
        found += copied != NULL;
    }
    hide_table(DT_HASH);
    assert_null(vdso_symbol(vdso_copy, MACHINE_VDSO_CLOCK));
    assert_true(found >= 1);
}

static void vdso_tells_the_kernels_time(void **state) {
    struct timespec before;
    struct timespec after;
    struct vdso_time now;
    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(vdso_clock(CLOCK_MONOTONIC, &now), 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(now.s > before.tv_sec || (now.s == before.tv_sec && now.ns >= before.tv_nsec));
    assert_true(now.s < after.tv_sec || (now.s == after.tv_sec && now.ns <= after.tv_nsec));
    assert_int_equal(sys_clock_call(CLOCK_MONOTONIC, &now), 0);
    assert_true(now.s >= after.tv_sec);
    assert_true(vdso_clock(12345, &now) != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_by_value),
        cmocka_unit_test(changes_with_the_time),
        cmocka_unit_test(other_times_are_not_found),
        cmocka_unit_test(unknown_is_always_looked_at),
        cmocka_unit_test(this_kernels_word),
        cmocka_unit_test(vdso_by_either_table),
        cmocka_unit_test(vdso_tells_the_kernels_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
