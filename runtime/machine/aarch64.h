/* SPDX-License-Identifier: MIT */
/* aarch64.h: AArch64, little-endian, for machine.h, where it is told what all this is for; the
 * first part also for assembly. */
#ifndef RUNTIME_MACHINE_AARCH64_H
#define RUNTIME_MACHINE_AARCH64_H

#define MACHINE_GUARD_CELL  16
#define MACHINE_GUARD_COUNT 1 /* there are none */

#ifndef __ASSEMBLER__
#include "runtime/base/compiler.h"

#include <elf.h>
#include <stdint.h>

enum {
    MACHINE_ELF = EM_AARCH64,
    MACHINE_ADDRESS_BITS = 48,
    /* AADWARF64: x29, sp, x30. */
    MACHINE_DWARF_FP = 29,
    MACHINE_DWARF_SP = 31,
    MACHINE_DWARF_RA = 30,
    /* struct rt_sigframe: siginfo (128), ucontext: flags, link, stack (40), sigmask (128), then
     * sigcontext at 16-byte alignment: fault_address, regs[31], sp, pc. */
    MACHINE_SIGNAL_FP = 128 + 176 + 8 + 8 * 29,
    MACHINE_SIGNAL_SP = 128 + 176 + 8 + 8 * 31,
    MACHINE_SIGNAL_PC = 128 + 176 + 8 + 8 * 32,
    /* libunwind-aarch64.h: UNW_AARCH64_PC, UNW_AARCH64_SP. */
    MACHINE_LIBUNWIND_PC = 32,
    MACHINE_LIBUNWIND_SP = 31,
    MACHINE_RELOC_CALL = R_AARCH64_JUMP_SLOT,
    MACHINE_RELOC_GOT = R_AARCH64_GLOB_DAT,
    MACHINE_RELOC_DATA = R_AARCH64_ABS64,
    MACHINE_LONGEST_CALL = 4,
    MACHINE_HAS_GUARDS = 0, /* return addresses may be signed */
};
#define MACHINE_NAME        "aarch64"
#define MACHINE_FIRST_GLIBC "GLIBC_2.17"

/* --- system calls ------------------------------------------------------------------------------
 */

INLINE long machine_call(long n, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

/* GCS: not asked for yet, and there are no guards that it could meet. */
INLINE int machine_has_shadow_stack(long (*call)(long, long, long, long, long, long, long)) {
    (void)call;
    return 0;
}

/* --- counters ----------------------------------------------------------------------------------
 */

/* One writer, but a handler on its thread may add in between: so in one atomic step. */
INLINE void counter_add(uint64_t *counter, uint64_t value) {
    __atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

/* The same, down. 1: it was smaller, and is now what it was plus 2^64 minus `value`. */
INLINE int counter_take(uint64_t *counter, uint64_t value) {
    return __atomic_fetch_sub(counter, value, __ATOMIC_RELAXED) < value;
}

INLINE void counter_increment(uint32_t *counter) {
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

INLINE int machine_is_less(int64_t a, const int64_t *b) {
    return a < LOAD_RELAXED(b);
}

INLINE int machine_is_greater(int64_t a, const int64_t *b) {
    return a > LOAD_RELAXED(b);
}

/* --- fast halves (entry/fast.c) ----------------------------------------------------------------
 */

#define MACHINE_RESERVE_REGISTERS() _Static_assert(1, "nothing to reserve")
#define MACHINE_CALLER_FP()         (*(const uintptr_t *)__builtin_frame_address(0))

#endif
#endif
