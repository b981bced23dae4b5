/* SPDX-License-Identifier: MIT */
/*
 * x86_64_vectors.c: which registers of this processor are not general ones, and how they are saved:
 * for x86_64_allocators.S. Intel SDM volume 1, chapter 13; volume 2, CPUID.
 */
#include "runtime/machine/machine.h"

#include <cpuid.h>

/* As x86_64_allocators.S has them. */
enum save { BY_FXSAVE, BY_XSAVE, BY_XSAVEC };

enum { LEGACY_BYTES = 512, HEADER_BYTES = 64 };

/* Until they are counted: what all have. */
HIDDEN struct machine_vectors {
    uint64_t which; /* components of the state, as XSAVE numbers them */
    uint64_t bytes;
    uint64_t how; /* enum save */
} machine_vectors = {.bytes = LEGACY_BYTES, .how = BY_FXSAVE};

/* The x87 registers, XMM with MXCSR, YMM's high halves, AVX-512's three, and the second half of the
 * general ones (APX), which who is built for them may use anywhere. Not the tiles of AMX, which are
 * large and used by nobody but who means it, nor what functions leave as it is. */
#define WANTED (UINT64_C(7) | UINT64_C(7) << 5 | UINT64_C(1) << 19)

/* What the system switches. */
static uint64_t enabled_components(void) {
    uint32_t low;
    uint32_t high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* The most that an area needs, in which they lie where XSAVE has them or one behind the other. */
static uint64_t area_bytes(uint64_t which) {
    uint64_t compact = LEGACY_BYTES + HEADER_BYTES;
    uint64_t bytes = compact;
    for (uint32_t i = 2; i < 63; i++) {
        uint32_t size;
        uint32_t offset;
        uint32_t flags;
        uint32_t unused;
        if ((which >> i & 1) == 0) {
            continue;
        }
        __cpuid_count(0xd, i, size, offset, flags, unused);
        (void)flags;
        (void)unused;
        compact += (size + 63) & ~63u; /* each may begin at a multiple of 64 */
        bytes = offset + size > bytes ? offset + size : bytes;
    }
    return compact > bytes ? compact : bytes;
}

void machine_prepare_allocators(void) {
    uint32_t a;
    uint32_t b;
    uint32_t c;
    uint32_t d;
    struct machine_vectors vectors = machine_vectors;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_OSXSAVE) == 0) {
        return;
    }
    vectors.which = enabled_components() & WANTED;
    vectors.bytes = area_bytes(vectors.which);
    __cpuid_count(0xd, 1, a, b, c, d);
    vectors.how = (a & bit_XSAVEC) != 0 ? BY_XSAVEC : BY_XSAVE;
    machine_vectors = vectors;
}
