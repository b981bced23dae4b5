/* SPDX-License-Identifier: MIT */
/* mips64.h: MIPS of 64 bits with the n64 ABI, of either byte order, for machine.h, where it is told
 * what all this is for. The runtime is built by GCC here. */
#ifndef RUNTIME_MACHINE_MIPS64_H
#define RUNTIME_MACHINE_MIPS64_H

#include "runtime/base/compiler.h"

#include <elf.h>
#include <stdint.h>

enum {
    MACHINE_ELF = EM_MIPS,
    MACHINE_ADDRESS_BITS = 48,
    /* $fp ($30), $sp, $ra. */
    MACHINE_DWARF_FP = 30,
    MACHINE_DWARF_SP = 29,
    MACHINE_DWARF_RA = 31,
    MACHINE_CALL_PUSHES = 0,
    /* struct rt_sigframe (arch/mips/kernel/signal.c): six words of 4 bytes, siginfo (128),
     * ucontext: flags, link, stack (40), then sigcontext: regs[32], fpregs[32], eight halves of
     * products, pc. */
    MACHINE_SIGNAL_SP = 24 + 128 + 40 + 8 * 29,
    MACHINE_SIGNAL_FP = 24 + 128 + 40 + 8 * 30,
    MACHINE_SIGNAL_LINK = 24 + 128 + 40 + 8 * 31,
    MACHINE_SIGNAL_PC = 24 + 128 + 40 + 8 * 72,
    /* libunwind-mips.h: UNW_MIPS_PC, UNW_MIPS_R29. */
    MACHINE_LIBUNWIND_PC = 34,
    MACHINE_LIBUNWIND_SP = 29,
    /* Dynamic relocations are of two operations, where one is not enough: here add what is there to
     * a symbol, in 64 bits. */
    MACHINE_RELOC_CALL = R_MIPS_JUMP_SLOT,
    MACHINE_RELOC_GOT = R_MIPS_GLOB_DAT,
    MACHINE_RELOC_DATA = R_MIPS_REL32 | R_MIPS_64 << 8,
    MACHINE_LONGEST_CALL = 8, /* with the instruction in its delay slot */
    MACHINE_HAS_GUARDS = 0,
    MACHINE_KNOWS_GO = 0,
    MACHINE_STORES_CONSTANTS = 0,
};
#ifdef __MIPSEL__
#define MACHINE_NAME "mips64el"
#else
#define MACHINE_NAME "mips64"
#endif
#define MACHINE_FIRST_GLIBC       "GLIBC_2.2"
#define MACHINE_SIGNAL_WORDS      2 /* 128 signals */
#define MACHINE_HAS_OWN_STAT      1
#define MACHINE_HAS_WORDS         0 /* no pass of a compiler makes any */
#define MACHINE_HAS_FP_CHAIN      0 /* $fp is where a frame begins, far from what it saved */
#define MACHINE_GUESSES           0
#define MACHINE_GOT_IS_BY_SYMBOLS 1
#define MACHINE_DEBUG_SECTION     SHT_MIPS_DWARF

#include "runtime/machine/linked.h"

/* --- system calls ----------------------------------------------------------------------------- */

/* An error is told by $a3, and its number is positive. */
INLINE long machine_call(long n, long a, long b, long c, long d, long e, long f) {
    register long v0 __asm__("$2") = n;
    register long a0 __asm__("$4") = a;
    register long a1 __asm__("$5") = b;
    register long a2 __asm__("$6") = c;
    register long a3 __asm__("$7") = d;
    register long a4 __asm__("$8") = e;
    register long a5 __asm__("$9") = f;
    __asm__ volatile("syscall"
                     : "+r"(v0), "+r"(a3)
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a4), "r"(a5)
                     : "$1", "$3", "$10", "$11", "$12", "$13", "$14", "$15", "$24", "$25", "hi",
                       "lo", "memory");
    return a3 != 0 ? -v0 : v0;
}

/* --- relocations ------------------------------------------------------------------------------ */

/* r_info is not one number here, but a symbol, and from the highest address down bytes of types
 * (MIPS ELF-64 object file specification, 2.9.1). */
INLINE uint32_t machine_relocation_type(uint64_t info) {
#ifdef __MIPSEL__
    return __builtin_bswap32((uint32_t)(info >> 32)) & 0xffffff;
#else
    return (uint32_t)info & 0xffffff;
#endif
}

INLINE uint32_t machine_relocation_symbol(uint64_t info) {
#ifdef __MIPSEL__
    return (uint32_t)info;
#else
    return (uint32_t)(info >> 32);
#endif
}

/* --- frames ----------------------------------------------------------------------------------- */

INLINE uintptr_t machine_plain(uintptr_t word) {
    return word;
}

/* The function that this stands in saves $ra, since it is told that it is lost, and below it $fp,
 * by which it finds its own frame; both right below its CFA, unless it takes any number of
 * arguments. */
#define MACHINE_FRAME()                                                                            \
    __extension__({                                                                                \
        __asm__ volatile("" : : : "$31");                                                          \
        (uintptr_t) __builtin_dwarf_cfa() - 2 * sizeof(uintptr_t);                                 \
    })

INLINE struct machine_sp machine_frame_sp(uintptr_t frame) {
    return machine_keep_sp(frame + 2 * sizeof(uintptr_t));
}

/* --- fast halves (entry/fast.c) --------------------------------------------------------------- */

#define MACHINE_RESERVE_REGISTERS() register uintptr_t machine_fp __asm__("$30")
#define MACHINE_CALLER_FP()         machine_fp

/* --- signals, tables -------------------------------------------------------------------------- */

/* The kernel tells nobody by tables where a handler returns to. */
enum { MACHINE_HAS_SIGNAL_CODE = 1 };

/* Whether the code there, eight bytes that can be read, returns from a handler: li $v0,
 * __NR_rt_sigreturn; syscall (arch/mips/vdso/sigreturn.S). */
INLINE int machine_returns_from_signal(uintptr_t pc) {
    const uint32_t *code = (const uint32_t *)pc;
    return pc % sizeof *code == 0 && code[0] == 0x2402145b && code[1] == 0x0000000c;
}

#endif
