/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/jit.c, with the unwind table of this very program as what is registered.
 */
#include "runtime/stack/jit.h"

#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static const uint8_t *header; /* .eh_frame_hdr */
static const uint8_t *frames; /* .eh_frame */

static int find_own(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    (void)argument;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
            int32_t distance; /* encoded pc-relative, as linkers do */
            header = (const uint8_t *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
            memcpy(&distance, header + 4, sizeof distance);
            frames = header + 4 + distance;
        }
    }
    return 1; /* the program comes first */
}

static int set_up(void **state) {
    (void)state;
    dl_iterate_phdr(find_own, NULL);
    return header != NULL ? 0 : -1;
}

static uintptr_t some_code(void) {
    return (uintptr_t)some_code + 1;
}

/* An FDE of the table, the last before one that is not about code of ours. */
static const uint8_t *entry_of(uintptr_t address) {
    uintptr_t start;
    uintptr_t end;
    for (const uint8_t *entry = frames; entry != NULL; entry = cfi_next(entry)) {
        if (cfi_range(NULL, entry, &start, &end) == 0 && address >= start && address < end) {
            return entry;
        }
    }
    return NULL;
}

static void test_whole_table(void **state) {
    uintptr_t address = some_code();
    struct cfi_row row;
    struct cfi_row expected;
    uintptr_t start;
    uintptr_t end;
    (void)state;
    assert_int_equal(jit_find(address, &row), -1);
    jit_add(frames, frames);
    assert_int_equal(jit_find(address, &row), 0);
    assert_int_equal(cfi_find(header, address, &expected), 0);
    assert_int_equal(row.cfa_offset, expected.cfa_offset);
    assert_int_equal(row.cfa_register, expected.cfa_register);
    assert_int_equal(row.start, expected.start);
    assert_true(jit_holds(address));
    assert_int_equal(jit_remove(frames, &start, &end), 1);
    assert_true(start <= address && address < end);
    assert_false(jit_holds(address));
    assert_int_equal(jit_remove(frames, &start, &end), 0);
}

static void test_single_entry(void **state) {
    const uint8_t *entry = entry_of(some_code());
    uintptr_t start;
    uintptr_t end;
    (void)state;
    assert_non_null(entry);
    jit_add(entry, entry);
    assert_true(jit_holds(some_code()));
    assert_false(jit_holds((uintptr_t)set_up + 1)); /* nothing behind it was read */
    assert_int_equal(jit_remove(entry, &start, &end), 1);
    assert_int_equal(start, (uintptr_t)some_code);
}

/* More than one leaf of places, under names of their own. */
static void test_many(void **state) {
    const uint8_t *entry = entry_of(some_code());
    uintptr_t start;
    uintptr_t end;
    (void)state;
    for (uintptr_t key = 1; key <= 5000; key++) {
        jit_add((const void *)key, entry);
    }
    for (uintptr_t key = 1; key < 5000; key++) {
        assert_int_equal(jit_remove((const void *)key, &start, &end), 1);
    }
    assert_true(jit_holds(some_code()));
    assert_int_equal(jit_remove((const void *)5000, &start, &end), 1);
    assert_false(jit_holds(some_code()));
}

/* Tables that nobody can read are left alone. */
static void test_unreadable(void **state) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t long_entry = 64;
    uint32_t zero = 0;
    (void)state;
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    memcpy(pages + page - 8, &long_entry, sizeof long_entry);
    jit_add(pages, pages + page - 8);
    jit_add(pages, pages + page);
    jit_add(&zero, &zero);
    assert_false(jit_holds(some_code()));
    munmap(pages, 2 * page);
}

static void *add_and_remove(void *argument) {
    const uint8_t *entry = entry_of(some_code());
    uintptr_t start;
    uintptr_t end;
    for (int i = 0; i < 20000; i++) {
        jit_add(argument, entry);
        if (!jit_holds(some_code()) || jit_remove(argument, &start, &end) != 1) {
            return argument;
        }
    }
    return NULL;
}

static void test_threads(void **state) {
    pthread_t threads[4];
    int keys[4];
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add_and_remove, &keys[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_false(jit_holds(some_code()));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_table), cmocka_unit_test(test_single_entry),
        cmocka_unit_test(test_many),        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
