/* SPDX-License-Identifier: MIT */
/* riscv64.h: RISC-V with 64 bits (rv64gc), for machine.h, where it is told what all this is for;
 * The runtime is built by GCC here: of Clang's functions nobody
 * tells the CFA. */
#ifndef RUNTIME_MACHINE_RISCV64_H
#define RUNTIME_MACHINE_RISCV64_H

#include "runtime/base/compiler.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

enum {
    MACHINE_ELF = EM_RISCV,
    MACHINE_ADDRESS_BITS = 48,
    /* RISC-V DWARF specification: s0, sp, ra. */
    MACHINE_DWARF_FP = 8,
    MACHINE_DWARF_SP = 2,
    MACHINE_DWARF_RA = 1,
    MACHINE_CALL_PUSHES = 0,
    /* struct rt_sigframe: siginfo (128), ucontext: flags, link, stack (40), sigmask (128), then
     * sigcontext at 16-byte alignment: pc, x1, x2 and so on. */
    MACHINE_SIGNAL_PC = 128 + 176,
    MACHINE_SIGNAL_LINK = 128 + 176 + 8 * 1,
    MACHINE_SIGNAL_SP = 128 + 176 + 8 * 2,
    MACHINE_SIGNAL_FP = 128 + 176 + 8 * 8,
    /* libunwind-riscv.h: UNW_RISCV_PC, UNW_RISCV_X2. */
    MACHINE_LIBUNWIND_PC = 64,
    MACHINE_LIBUNWIND_SP = 2,
    /* What is read from the GOT has no relocation of its own: it is as data. */
    MACHINE_RELOC_CALL = R_RISCV_JUMP_SLOT,
    MACHINE_RELOC_GOT = R_RISCV_NONE,
    MACHINE_RELOC_DATA = R_RISCV_64,
    MACHINE_LONGEST_CALL = 4,
    MACHINE_HAS_GUARDS = 0, /* none were written */
    MACHINE_KNOWS_GO = 0,
    MACHINE_STORES_CONSTANTS = 0,
};
#define MACHINE_NAME                 "riscv"
#define MACHINE_FIRST_GLIBC          "GLIBC_2.27"
#define MACHINE_FP_RECORD            (-16) /* fp is the CFA */
#define MACHINE_GUESSES              0
#define MACHINE_KNOWS_STUBS          1
#define MACHINE_EXCHANGES_WORDS_ONLY 1

INLINE uintptr_t machine_plain(uintptr_t word) {
    return word;
}

#include "runtime/machine/linked.h"
#include "runtime/machine/marked.h"

/* --- system calls ----------------------------------------------------------------------------- */

INLINE long machine_call(long n, long a, long b, long c, long d, long e, long f) {
    register long a7 __asm__("a7") = n;
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    register long a3 __asm__("a3") = d;
    register long a4 __asm__("a4") = e;
    register long a5 __asm__("a5") = f;
    __asm__ volatile("ecall"
                     : "+r"(a0)
                     : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
                     : "memory");
    return a0;
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Puts `value` into a byte that is *old; else tells in *old what it is, or that is changing. 1, or
 * 0. (Words only can be exchanged.) */
INLINE int machine_replace_byte(uint8_t *byte, uint8_t *old, uint8_t value) {
    uint32_t *word = (uint32_t *)((uintptr_t)byte & ~(uintptr_t)3);
    unsigned shift = ((uintptr_t)byte & 3) * 8;
    uint32_t before = LOAD_RELAXED(word);
    uint32_t after = (before & ~(UINT32_C(0xff) << shift)) | (uint32_t)value << shift;
    if ((uint8_t)(before >> shift) != *old) {
        *old = (uint8_t)(before >> shift);
        return 0;
    }
    return __atomic_compare_exchange_n(word, &before, after, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* --- frames ----------------------------------------------------------------------------------- */

/* Where s0 and ra were saved, and from bit 48 on how far that is from the CFA: both are multiples
 * of 16 (arguments of a variable number lie between). A function that only jumps to others would
 * keep ra where it is. */
INLINE uintptr_t machine_frame(uintptr_t fp, uintptr_t cfa) {
    uintptr_t record = fp + (uintptr_t)MACHINE_FP_RECORD;
    __asm__ volatile("" : : : "ra");
    return record + ((cfa - record) << (MACHINE_ADDRESS_BITS - 4));
}
#define MACHINE_FRAME()                                                                            \
    machine_frame((uintptr_t)__builtin_frame_address(0), (uintptr_t)__builtin_dwarf_cfa())

/* --- fast halves (entry/fast.c) --------------------------------------------------------------- */

/* For a file without frame pointers of its own: keeps the caller's. */
#define MACHINE_RESERVE_REGISTERS() register uintptr_t machine_fp __asm__("s0")
#define MACHINE_CALLER_FP()         machine_fp

/* --- signals, tables -------------------------------------------------------------------------- */

/* The kernel's table says that its code returns from a handler, but not where registers lie. */
enum { MACHINE_HAS_SIGNAL_CODE = 1 };

/* Whether the code there, eight bytes that can be read, returns from a handler: li a7,
 * __NR_rt_sigreturn; ecall (arch/riscv/kernel/vdso/rt_sigreturn.S). */
INLINE int machine_returns_from_signal(uintptr_t pc) {
    uint32_t code[2];
    memcpy(code, (const void *)pc, sizeof code);
    return code[0] == 0x08b00893 && code[1] == 0x00000073;
}

#endif
