/* SPDX-License-Identifier: MIT */
/*
 * arm.h: ARMv7, 32 bits, little-endian, for machine.h, where it is told what all this is for.
 *
 * The runtime is ARM code here (not Thumb), whose functions keep r11 as frame pointer: it points to
 * the saved return address, and its old value lies below. Programs are mostly Thumb code, whose
 * frame pointer is r7: nothing of the runtime uses that register, so it is its caller's everywhere.
 */
#ifndef RUNTIME_MACHINE_ARM_H
#define RUNTIME_MACHINE_ARM_H

#include "runtime/base/compiler.h"

#include <elf.h>
#include <stdint.h>

#if defined(__thumb__) || defined(__ARM_BIG_ENDIAN)
#error "the runtime is built as ARM code, little-endian (-marm)"
#endif
/* ldrexd, strexd: the counters are shared with other processes. */
_Static_assert(__atomic_always_lock_free(sizeof(uint64_t), 0), "64-bit atomics (ARMv7)");

enum {
    MACHINE_ELF = EM_ARM,
    MACHINE_ADDRESS_BITS = 32,
    /* AADWARF32: r11, sp, lr; and r7. */
    MACHINE_DWARF_FP = 11,
    MACHINE_DWARF_SP = 13,
    MACHINE_DWARF_RA = 14,
    MACHINE_DWARF_SECOND_FP = 7,
    MACHINE_CALL_PUSHES = 0,
    /* struct ucontext: flags, link, stack (20), then sigcontext: trap_no, error_code, oldmask,
     * r0 to r10, fp, ip, sp, lr, pc. In struct rt_sigframe siginfo (128) comes before it. */
    MACHINE_SIGNAL_SECOND_FP = 20 + 4 * (3 + 7),
    MACHINE_SIGNAL_FP = 20 + 4 * (3 + 11),
    MACHINE_SIGNAL_SP = 20 + 4 * (3 + 13),
    MACHINE_SIGNAL_LINK = 20 + 4 * (3 + 14),
    MACHINE_SIGNAL_PC = 20 + 4 * (3 + 15),
    MACHINE_SIGNAL_INFO = 128,
    /* libunwind-arm.h: UNW_ARM_R15, UNW_ARM_R13. */
    MACHINE_LIBUNWIND_PC = 15,
    MACHINE_LIBUNWIND_SP = 13,
    MACHINE_RELOC_CALL = R_ARM_JUMP_SLOT,
    MACHINE_RELOC_GOT = R_ARM_GLOB_DAT,
    MACHINE_RELOC_DATA = R_ARM_ABS32,
    MACHINE_LONGEST_CALL = 4,
    MACHINE_HAS_GUARDS = 0,
    MACHINE_KNOWS_GO = 0,
    MACHINE_STORES_CONSTANTS = 0,
};
#define MACHINE_NAME                   "arm"
#define MACHINE_FIRST_GLIBC            "GLIBC_2.4"
#define MACHINE_OF_SIZE(before, after) before##j##after
#define MACHINE_SPLITS_ARGUMENTS       1
#define MACHINE_HAS_OWN_STAT           1
#define MACHINE_HAS_SHORT_OFFSETS      1
#define MACHINE_HAS_WORDS              0
#define MACHINE_HAS_EXIDX              1
#define MACHINE_HAS_FP_CHAIN           0
#define MACHINE_GUESSES                0
#define MACHINE_HAS_SECOND_FP          1
#define MACHINE_READS_PROLOGUES        1
#define MACHINE_HAS_TWO_SIGNAL_FRAMES  1

/* The caller's r7, as long as what it called has not returned. */
register uintptr_t machine_second_fp_register __asm__("r7");

/* --- system calls ----------------------------------------------------------------------------- */

/* r7 has the number while the kernel is called. */
INLINE long machine_call(long n, long a, long b, long c, long d, long e, long f) {
    register long r0 __asm__("r0") = a;
    register long r1 __asm__("r1") = b;
    register long r2 __asm__("r2") = c;
    register long r3 __asm__("r3") = d;
    register long r4 __asm__("r4") = e;
    register long r5 __asm__("r5") = f;
    register long r6 __asm__("r6") = n;
    __asm__ volatile("mov ip, r7\n\t"
                     "mov r7, %1\n\t"
                     "svc #0\n\t"
                     "mov r7, ip"
                     : "+r"(r0)
                     : "r"(r6), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5)
                     : "ip", "memory");
    return r0;
}

/* --- frames ----------------------------------------------------------------------------------- */

struct machine_sp {
    uintptr_t value;     /* 0: not known */
    uintptr_t link;      /* of an interrupted frame: where its lr lies; else 0 */
    uintptr_t second_fp; /* r7 */
};

/* Of a frame of which no more than this is known. */
INLINE struct machine_sp machine_keep_sp(uintptr_t sp) {
    return (struct machine_sp){sp, 0, 0};
}

INLINE struct machine_sp machine_keep_both(uintptr_t sp, uintptr_t second_fp) {
    return (struct machine_sp){sp, 0, second_fp};
}

INLINE uintptr_t machine_second_fp(struct machine_sp kept) {
    return kept.second_fp;
}

INLINE int machine_same_sp(struct machine_sp a, struct machine_sp b) {
    return a.value == b.value && a.second_fp == b.second_fp;
}

INLINE struct machine_sp machine_interrupted_sp(uintptr_t frame, uintptr_t sp) {
    return (struct machine_sp){sp, frame + MACHINE_SIGNAL_LINK,
                               *(const uintptr_t *)(frame + MACHINE_SIGNAL_SECOND_FP)};
}

/* Without the bit that says that it is Thumb code. */
INLINE uintptr_t machine_plain(uintptr_t word) {
    return word & ~(uintptr_t)1;
}

#include "runtime/machine/linked.h"

/* The word below the saved return address, where the old r11 lies. */
#define MACHINE_FRAME() ((uintptr_t)__builtin_frame_address(0) - sizeof(uintptr_t))

/* (No function that asks has arguments without names in registers: the return address is the first
 * that it saves.) */
INLINE struct machine_sp machine_frame_sp(uintptr_t frame) {
    return machine_keep_both(frame + 2 * sizeof(uintptr_t), machine_second_fp_register);
}

/* --- fast halves (entry/fast.c) --------------------------------------------------------------- */

#define MACHINE_RESERVE_REGISTERS() register uintptr_t machine_fp __asm__("r11")
#define MACHINE_CALLER_FP()         machine_fp

/* --- signals, tables -------------------------------------------------------------------------- */

enum { MACHINE_HAS_SIGNAL_CODE = 1 };

/* mov r7, #number; svc #0: as ARM code (of which svc may have the number, too) and as Thumb code,
 * whose mov has two forms. Handlers that are told no more than the signal return by sigreturn
 * (arch/arm/kernel/signal.c). */
enum { MACHINE_RETURNS = 119, MACHINE_RETURNS_RT = 173 };

INLINE uint32_t machine_signal_number(uintptr_t pc) {
    const uint16_t *halves = (const uint16_t *)pc;
    const uint16_t svc = 0xdf00;
    uint32_t number = halves[0] & 0xff;
    if ((halves[0] & 0xff00) == 0x2700 && halves[1] == svc) {
        return number;
    }
    if (halves[0] == 0xf04f && (halves[1] & 0xff00) == 0x0700 && halves[2] == svc) {
        return halves[1] & 0xff;
    }
    return (halves[0] & 0xff00) == 0x7000 && halves[1] == 0xe3a0 && halves[3] >> 8 == 0xef ? number
                                                                                           : 0;
}

INLINE int machine_returns_from_signal(uintptr_t pc) {
    uint32_t number = pc % sizeof(uint16_t) == 0 ? machine_signal_number(pc) : 0;
    return number == MACHINE_RETURNS || number == MACHINE_RETURNS_RT;
}

/* What the numbers above are counted from, of a handler that returns to `pc` with this stack
 * pointer. */
INLINE uintptr_t machine_signal_registers(uintptr_t pc, uintptr_t frame) {
    return machine_signal_number(pc) == MACHINE_RETURNS_RT ? frame + MACHINE_SIGNAL_INFO : frame;
}

#endif
