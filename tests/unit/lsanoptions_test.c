/* SPDX-License-Identifier: MIT */
/* lsanoptions_test.c: what functions return by their machine code, as assemblers wrote it. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/symbol/lsanoptions.h"

#include <elf.h>

static uint64_t x86(const char *code, size_t size) {
    return lsanoptions_returned(EM_X86_64, (const unsigned char *)code, size, 0x1000);
}

static uint64_t arm(const char *code, size_t size) {
    return lsanoptions_returned(EM_AARCH64, (const unsigned char *)code, size, 0x400010);
}

static void x86_code(void **state) {
    static const char lea[] = "\x48\x8d\x05\x6d\x0e\x00\x00\xc3";
    static const char framed[] = "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x8d\x05\xf0\xff\xff\xff\x5d";
    static const char eax[] = "\xb8\x04\x20\x40\x00\xc3";
    static const char rax[] = "\x48\xc7\xc0\x04\x20\x40\x00\xc3";
    static const char movabs[] = "\x55\x48\x89\xe5\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08\x5d\xc3";
    static const char load[] = "\x48\x8b\x05\x6d\x0e\x00\x00\xc3";
    (void)state;
    assert_true(x86(lea, sizeof lea) == 0x1000 + 7 + 0xe6d);
    assert_true(x86(framed, sizeof framed) == 0x1000 + 15 - 16);
    assert_true(x86(eax, sizeof eax) == 0x402004);
    assert_true(x86(rax, sizeof rax) == 0x402004);
    assert_true(x86(movabs, sizeof movabs) == UINT64_C(0x0807060504030201));
    assert_true(x86(load, sizeof load) == 0); /* a variable */
    for (size_t size = 0; size < 7; size++) {
        assert_true(x86(lea, size) == 0);
    }
    for (size_t size = 0; size < 14; size++) {
        assert_true(x86(movabs, size) == 0);
    }
}

static void arm_code(void **state) {
    static const char pair[] = "\x3f\x23\x03\xd5\x5f\x24\x03\xd5\xfd\x7b\xbf\xa9\xfd\x03\x00\x91"
                               "\x20\x00\x00\xb0\x00\x8c\x04\x91";  /* adrp x0,+0x5000; +0x123 */
    static const char back[] = "\xe0\xff\xff\xb0\x00\x8c\x04\x91";  /* adrp x0,-0x3000 */
    static const char adr[] = "\x60\xff\xff\x10\xc0\x03\x5f\xd6";   /* adr x0,-20; ret */
    static const char other[] = "\x21\x00\x00\xb0\x00\x8c\x04\x91"; /* adrp x1 */
    (void)state;
    assert_true(arm(pair, 24) == 0x400000 + 0x5000 + 0x123);
    assert_true(arm(back, 8) == 0x400000 - 0x3000 + 0x123);
    assert_true(arm(adr, 8) == 0x400010 - 20);
    assert_true(arm(other, 8) == 0);
    for (size_t size = 0; size < 24; size++) {
        assert_true(arm(pair, size) == 0);
    }
    assert_true(lsanoptions_returned(EM_RISCV, (const unsigned char *)pair, 24, 0) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(x86_code), cmocka_unit_test(arm_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
