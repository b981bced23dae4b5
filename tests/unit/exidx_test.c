/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/exidx.c: tables made by hand, by the encodings of "Exception Handling ABI
 * for the Arm Architecture" (IHI 0038, chapters 6, 7 and 10.3), and what follows from them by
 * addition. */
#include "runtime/stack/exidx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { ENTRIES = 8, WORDS = 8, CODE = 64, CANTUNWIND = 1, R7 = 7, R11 = 11, SP = 13 };

/* Entry i is about the code from code[i * CODE] on. */
static uint8_t code[(ENTRIES + 1) * CODE];
static uint32_t table[ENTRIES][2];
static uint32_t extab[ENTRIES][WORDS];

static uint32_t distance(const void *to, const void *from) {
    return (uint32_t)((uintptr_t)to - (uintptr_t)from) & 0x7fffffff;
}

static uintptr_t code_of(size_t entry) {
    return (uintptr_t)(code + entry * CODE);
}

static void add(size_t entry, uint32_t content) {
    table[entry][0] = distance(code + entry * CODE, &table[entry][0]);
    table[entry][1] = content;
}

/* Up to three instructions; what is missing is "finish". */
static void add_inline(size_t entry, uint32_t instructions) {
    add(entry, 0x80000000 | instructions);
}

static uint32_t *add_extab(size_t entry) {
    add(entry, distance(extab[entry], &table[entry][1]));
    return extab[entry];
}

static int find(size_t entry, struct cfi_row *row) {
    return exidx_find((const uint8_t *)table, ENTRIES, code_of(entry) + 10, row);
}

static struct cfi_row row_of(uint32_t instructions) {
    struct cfi_row row;
    add_inline(0, instructions);
    assert_int_equal(find(0, &row), 0);
    return row;
}

static void assert_saved(const struct cfi_register *reg, int64_t offset) {
    assert_int_equal(reg->place, CFI_OFFSET);
    assert_int_equal(reg->offset, offset);
}

static int reset(void **state) {
    (void)state;
    for (size_t i = 0; i < ENTRIES; i++) {
        add_inline(i, 0xb0b0b0);
    }
    return 0;
}

/* vsp += 144 and 256; pop {r4-r8, lr}: lr lies highest. */
static void test_pops_and_moves(void **state) {
    struct cfi_row row = row_of(0x233fac);
    (void)state;
    assert_int_equal(row.cfa_register, SP);
    assert_int_equal(row.cfa_offset, 144 + 256 + 6 * 4);
    assert_saved(&row.return_address, -4);
    assert_saved(&row.second_frame_pointer, -4 - 2 * 4); /* r8 between */
    assert_int_equal(row.frame_pointer.place, CFI_UNCHANGED);
    assert_false(row.may_catch);
}

/* vsp = r7; vsp -= 8; pop {r4, r7, r11, lr}. */
static void test_by_frame_pointer(void **state) {
    struct cfi_row row;
    uint32_t *at = add_extab(1);
    (void)state;
    at[0] = 0x81019741; /* routine 1, a further word */
    at[1] = 0x8489b0b0;
    assert_int_equal(find(1, &row), 0);
    assert_int_equal(row.cfa_register, R7);
    assert_int_equal(row.cfa_offset, -8 + 4 * 4);
    assert_saved(&row.return_address, -4);
    assert_saved(&row.frame_pointer, -8);
    assert_saved(&row.second_frame_pointer, -12);
    assert_int_equal(row.start, code_of(1));
    assert_int_equal(row.end, code_of(2));
}

/* vsp = r11; vsp -= 4; pop {r11, lr}; pop {r0-r3}, as a function with unnamed arguments does. */
static void test_arguments_above(void **state) {
    struct cfi_row row;
    uint32_t *at = add_extab(1);
    (void)state;
    at[0] = 0x81019b40;
    at[1] = 0x8480b10f;
    assert_int_equal(find(1, &row), 0);
    assert_int_equal(row.cfa_register, R11);
    assert_int_equal(row.cfa_offset, -4 + 2 * 4 + 4 * 4);
    assert_saved(&row.return_address, -4 - 16);
    assert_saved(&row.frame_pointer, -8 - 16);
}

/* Behind the address of a personality routine: three instructions, and those of further words. */
static void test_generic(void **state) {
    struct cfi_row row;
    uint32_t *at = add_extab(2);
    (void)state;
    at[0] = distance(code, at);
    at[1] = 0x01b20484; /* vsp += 0x204 + (4 << 2); pop, of ... */
    at[2] = 0x00b0b0b0; /* ... lr */
    assert_int_equal(find(2, &row), 0);
    assert_int_equal(row.cfa_offset, 0x204 + 16 + 4);
    assert_saved(&row.return_address, -4);
    assert_true(row.may_catch);
}

/* What floating point registers take: as vpush saves them, as fstmx does (a word more), from d16
 * on. */
static void test_floating_point(void **state) {
    (void)state;
    assert_int_equal(row_of(0xd3a8b0).cfa_offset, 4 * 8 + 2 * 4); /* d8-d11, r4, lr */
    assert_int_equal(row_of(0xb9a8b0).cfa_offset, 2 * 8 + 4 + 2 * 4);
    assert_int_equal(row_of(0xc982a8).cfa_offset, 3 * 8 + 2 * 4);
    assert_int_equal(row_of(0xc801a8).cfa_offset, 2 * 8 + 2 * 4);
    assert_int_equal(row_of(0xb382a8).cfa_offset, 3 * 8 + 4 + 2 * 4);
}

/* A function that saves nothing returns by its register. */
static void test_nothing_saved(void **state) {
    struct cfi_row row = row_of(0xb0b0b0);
    (void)state;
    assert_int_equal(row.cfa_offset, 0);
    assert_int_equal(row.return_address.place, CFI_UNCHANGED);
    row = row_of(0x01b0b0); /* eight bytes of its own */
    assert_int_equal(row.cfa_offset, 8);
    assert_int_equal(row.return_address.place, CFI_UNCHANGED);
}

/* Popped into pc, that is where it goes on. */
static void test_pc(void **state) {
    struct cfi_row row = row_of(0x8808b0); /* pop {r7, pc} */
    (void)state;
    assert_int_equal(row.cfa_offset, 8);
    assert_saved(&row.return_address, -4);
    assert_saved(&row.second_frame_pointer, -8);
}

static void test_no_way(void **state) {
    struct cfi_row row;
    static const uint32_t refused[] = {
        0x8000b0,  /* "refuse to unwind" */
        0xb100b0,  /* spare */
        0xb110b0,  /* spare */
        0xb5b0b0,  /* spare */
        0x9db0b0,  /* vsp = vsp */
        0xa8979b,  /* vsp = r7 after something was popped by sp */
        0x8200b0,  /* pop {sp}: only a signal frame */
        0xcab0b0,  /* spare */
        0x1b0b0b0, /* routine 1 cannot stand in an entry */
    };
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        add_inline(3, refused[i]);
        assert_int_equal(find(3, &row), -1);
    }
    add(3, CANTUNWIND);
    assert_int_equal(find(3, &row), -1);
    add_extab(3)[0] = 0x83b0b0b0; /* a routine that the ABI has none of */
    assert_int_equal(find(3, &row), -1);
}

static void test_search(void **state) {
    struct cfi_row row;
    (void)state;
    for (size_t i = 0; i < ENTRIES; i++) {
        add_inline(i, (uint32_t)i << 16 | 0xa8b0); /* vsp += 4 * i + 4; pop {r4, lr} */
    }
    for (size_t at = 0; at < ENTRIES * (size_t)CODE; at++) {
        assert_int_equal(exidx_find((const uint8_t *)table, ENTRIES, code_of(0) + at, &row), 0);
        assert_int_equal(row.cfa_offset, (int64_t)(at / CODE * 4) + 12);
        assert_int_equal(row.start, code_of(at / CODE));
    }
    assert_int_equal(row.end, UINTPTR_MAX);
    assert_int_equal(exidx_find((const uint8_t *)table, ENTRIES, code_of(0) - 1, &row), -1);
    assert_int_equal(exidx_find((const uint8_t *)table, 0, code_of(0), &row), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_pops_and_moves, reset),
        cmocka_unit_test_setup(test_by_frame_pointer, reset),
        cmocka_unit_test_setup(test_arguments_above, reset),
        cmocka_unit_test_setup(test_generic, reset),
        cmocka_unit_test_setup(test_floating_point, reset),
        cmocka_unit_test_setup(test_nothing_saved, reset),
        cmocka_unit_test_setup(test_pc, reset),
        cmocka_unit_test_setup(test_no_way, reset),
        cmocka_unit_test_setup(test_search, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
