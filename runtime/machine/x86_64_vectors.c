/* SPDX-License-Identifier: MIT */
/*
 * x86_64_vectors.c: which vector registers this processor has, and the system switches: so which
 * function of x86_64_allocators.S saves them all. Intel SDM volume 1, chapter 13; volume 2, CPUID.
 */
#include "runtime/machine/machine.h"

#include <cpuid.h>

void machine_call_apart_xmm(void);
void machine_call_apart_ymm(void);
void machine_call_apart_zmm(void);
void machine_call_apart_knl(void);

/* Called by the entries, which pass arguments of their own kind. */
HIDDEN void (*machine_call_apart)(void) = machine_call_apart_xmm;

/* Of XCR0: XMM and YMM; and masks, ZMM, the other 16 of these. */
enum { OF_YMM = 0x06, OF_ZMM = 0xe6 };

static uint64_t switched(void) {
    uint32_t low;
    uint32_t high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

void machine_prepare_allocators(void) {
    uint32_t a;
    uint32_t b = 0;
    uint32_t c;
    uint32_t d;
    uint64_t which;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_OSXSAVE) == 0 || (c & bit_AVX) == 0) {
        return;
    }
    which = switched();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        b = 0;
    }
    if ((which & OF_ZMM) == OF_ZMM && (b & bit_AVX512F) != 0) {
        machine_call_apart =
            (b & bit_AVX512BW) != 0 ? machine_call_apart_zmm : machine_call_apart_knl;
    } else if ((which & OF_YMM) == OF_YMM) {
        machine_call_apart = machine_call_apart_ymm;
    }
}
