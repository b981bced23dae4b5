/* SPDX-License-Identifier: MIT */
/* attachtarget_test.c: where there is room in a program that is attached to, by its maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/base/thismachine.h"
#include "collect/attach/attachtarget.h"
#include "memtrace/blocks.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 8192 };

/* Of a program with its code low, and one library at `library`. */
static uint64_t gap_below(uint64_t library) {
    char text[400];
    struct attachtarget target;
    uint64_t gap;
    FILE *maps;
    snprintf(text, sizeof text,
             "400000-401000 r-xp 00000000 fd:01 7 /bin/true\n"
             "%" PRIx64 "-%" PRIx64 " r-xp 00000000 fd:01 8 /lib/libc.so.6\n",
             library, library + 0x10000);
    maps = fmemopen(text, strlen(text), "r");
    assert_non_null(maps);
    assert_int_equal(attachtarget_read(maps, getpid(), &target, NULL), 0);
    gap = attachtarget_gap(&target, ROOM);
    attachtarget_close(&target);
    fclose(maps);
    return gap;
}

static void test_room(void **state) {
    uint64_t gap = gap_below(UINT64_C(0x7f0000000000));
    (void)state;
    assert_int_equal(gap % (uint64_t)sysconf(_SC_PAGESIZE), 0);
    assert_uint_in_range(gap, UINT64_C(1) << 32, UINT64_C(0x7f0000000000) - ROOM);
    assert_int_equal(gap_below((UINT64_C(1) << 32) + ROOM), 0); /* not twice as much as is wanted */
}

/* What a hostile program says lies beyond the addresses that the kernel gives. */
static void test_beyond(void **state) {
    (void)state;
    assert_int_equal(gap_below(UINT64_C(1) << memtrace_address_bits(thismachine())), 0);
    assert_int_equal(gap_below(UINT64_C(0xffffffffff600000)), 0);
}

/* The kernel tells it in pieces: the second mapping grew downwards in between, the third was joined
 * to the one before. */
static void test_changing(void **state) {
    char text[] = "10000-30000 r--p 00000000 fd:01 7 /bin/true\n"
                  "20000-50000 rw-p 00010000 fd:01 7 /bin/true\n"
                  "30000-40000 rw-p 00000000 00:00 0 \n"
                  "60000-70000 rw-p 00000000 00:00 0 \n";
    struct attachtarget target;
    FILE *maps = fmemopen(text, strlen(text), "r");
    (void)state;
    assert_non_null(maps);
    assert_int_equal(attachtarget_read(maps, getpid(), &target, NULL), 0);
    assert_int_equal(target.count, 3);
    assert_int_equal(target.mappings[1].start, 0x30000);
    assert_int_equal(target.mappings[1].end, 0x50000);
    assert_int_equal(target.mappings[1].offset, 0x20000);
    assert_int_equal(target.mappings[2].start, 0x60000);
    attachtarget_close(&target);
    fclose(maps);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_room), cmocka_unit_test(test_beyond),
                                       cmocka_unit_test(test_changing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
