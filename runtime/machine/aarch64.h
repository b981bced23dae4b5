/* SPDX-License-Identifier: MIT */
/* aarch64.h: AArch64, little-endian, for machine.h, where it is told what all this is for; the
 * first part also for assembly. The runtime is built by GCC here: of Clang's functions nobody tells
 * the CFA. */
#ifndef RUNTIME_MACHINE_AARCH64_H
#define RUNTIME_MACHINE_AARCH64_H

#define MACHINE_GUARD_CELL 16
#ifndef MACHINE_GUARD_COUNT
#define MACHINE_GUARD_COUNT 16384 /* as x86_64.h has it */
#endif

#ifndef __ASSEMBLER__
#include "runtime/base/compiler.h"

#include <elf.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

enum {
    MACHINE_ELF = EM_AARCH64,
    MACHINE_ADDRESS_BITS = 48,
    /* AADWARF64: x29, sp, x30. */
    MACHINE_DWARF_FP = 29,
    MACHINE_DWARF_SP = 31,
    MACHINE_DWARF_RA = 30,
    MACHINE_CALL_PUSHES = 0,
    /* struct rt_sigframe: siginfo (128), ucontext: flags, link, stack (40), sigmask (128), then
     * sigcontext at 16-byte alignment: fault_address, regs[31], sp, pc. */
    MACHINE_SIGNAL_FP = 128 + 176 + 8 + 8 * 29,
    MACHINE_SIGNAL_LINK = 128 + 176 + 8 + 8 * 30,
    MACHINE_SIGNAL_SP = 128 + 176 + 8 + 8 * 31,
    MACHINE_SIGNAL_PC = 128 + 176 + 8 + 8 * 32,
    /* libunwind-aarch64.h: UNW_TDEP_IP, which is its X30 (its PC does not change with the steps),
     * and UNW_AARCH64_SP. */
    MACHINE_LIBUNWIND_PC = 30,
    MACHINE_LIBUNWIND_SP = 31,
    MACHINE_RELOC_CALL = R_AARCH64_JUMP_SLOT,
    MACHINE_RELOC_GOT = R_AARCH64_GLOB_DAT,
    MACHINE_RELOC_DATA = R_AARCH64_ABS64,
    MACHINE_LONGEST_CALL = 4,
    MACHINE_HAS_GUARDS = 1,
    MACHINE_KNOWS_GO = 1,
    MACHINE_STORES_CONSTANTS = 0,
};
#define MACHINE_NAME              "aarch64"
#define MACHINE_FIRST_GLIBC       "GLIBC_2.17"
#define MACHINE_VDSO_CLOCK        "__kernel_clock_gettime"
#define MACHINE_NOTES_REGISTERS   1
#define MACHINE_MAY_SIGN          1
#define MACHINE_ASKS_SHADOW_STACK 1
#define MACHINE_ASKS_VALGRIND     1
#define MACHINE_VALGRIND_INLINE   1
#define MACHINE_TELLS_FP_ABOVE_SP 1
#define MACHINE_TAGS_POINTERS     1

/* The bits of a code address. Above them a signed one has its signature: where they end follows
 * from how many bits of address the kernel gives, which are fewer than 48 with some page sizes. */
extern uintptr_t machine_code_bits;

INLINE uintptr_t machine_plain(uintptr_t word) {
    return word & machine_code_bits;
}

/* XPACLRI takes the signature out of x30, here out of an address of all ones below bit 55; where
 * nothing is signed it does nothing (Arm ARM, "XPACLRI" and "AddPAC"). */
INLINE void machine_start(void) {
    register uintptr_t x30 __asm__("x30") = UINTPTR_MAX >> 9;
    __asm__ volatile("hint #7" : "+r"(x30));
    if (x30 < machine_code_bits) {
        machine_code_bits = x30;
    }
}

#include "runtime/machine/linked.h"
#include "runtime/machine/marked.h"

/* Near the guards' code: .bss may be further from it than its loads reach, which are 1 MiB. */
#define MACHINE_GUARD_TABLE __attribute__((section(".data.guards")))

/* --- system calls ----------------------------------------------------------------------------- */

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

/* Whether the hardware compares this thread's return addresses with a stack of its own (GCS; Linux
 * 6.13, include/uapi/linux/prctl.h). Asked by `call`, since a filter may forbid it. */
INLINE int machine_has_shadow_stack(long (*call)(long, long, long, long, long, long, long)) {
    enum { GET_SHADOW_STACK_STATUS = 74, SHADOW_STACK_ENABLE = 1 };
    uint64_t status = 0;
    return call(SYS_prctl, GET_SHADOW_STACK_STATUS, (long)&status, 0, 0, 0, 0) == 0 &&
           (status & SHADOW_STACK_ENABLE) != 0;
}

/* Rotations that come to nothing on a CPU. */
INLINE uint64_t machine_ask_valgrind(const uint64_t request[6]) {
    register uint64_t answer __asm__("x3") = 0;
    register const uint64_t *asked __asm__("x4") = request;
    __asm__ volatile("ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61\n\t"
                     "orr x10, x10, x10"
                     : "+r"(answer)
                     : "r"(asked)
                     : "cc", "memory");
    return answer;
}

/* The top byte is ignored where memory is accessed; glibc's malloc puts MTE's tags there
 * (GLIBC_TUNABLES=glibc.mem.tagging; Linux, Documentation/arm64/memory-tagging-extension.rst). */
INLINE uintptr_t machine_untagged(const void *pointer) {
    return (uintptr_t)pointer & (UINTPTR_MAX >> 8);
}

/* --- frames ----------------------------------------------------------------------------------- */

/* The frame record, in which functions save x29 and x30 side by side, where they like; and from bit
 * 48 on how far it is from the CFA: both are multiples of 16. */
#define MACHINE_FRAME()                                                                            \
    ((uintptr_t)__builtin_frame_address(0) +                                                       \
     (((uintptr_t)__builtin_dwarf_cfa() - (uintptr_t)__builtin_frame_address(0)) << 44))

/* The frame that calls this goes into a context of libunwind's, which is a ucontext_t up to pc.
 * libunwind has no function for it here, only a macro. What a call may change is not needed. */
INLINE void machine_note_registers(void *context) {
    enum { REGISTERS = MACHINE_SIGNAL_FP - 128 - 8 * 29 };
    char *registers = (char *)context + REGISTERS;
    __asm__ volatile("stp x19, x20, [%0, #152]\n\t"
                     "stp x21, x22, [%0, #168]\n\t"
                     "stp x23, x24, [%0, #184]\n\t"
                     "stp x25, x26, [%0, #200]\n\t"
                     "stp x27, x28, [%0, #216]\n\t"
                     "stp x29, x30, [%0, #232]\n\t"
                     "mov x9, sp\n\t"
                     "adr x10, 1f\n"
                     "1:\n\t"
                     "stp x9, x10, [%0, #248]"
                     :
                     : "r"(registers)
                     : "x9", "x10", "memory");
}

/* --- fast halves (entry/fast.c) --------------------------------------------------------------- */

#define MACHINE_RESERVE_REGISTERS() _Static_assert(1, "nothing to reserve")
#define MACHINE_CALLER_FP()         (*(const uintptr_t *)__builtin_frame_address(0))

/* --- signals, tables -------------------------------------------------------------------------- */

/* The kernel tells nobody by tables where a handler returns to. */
enum { MACHINE_HAS_SIGNAL_CODE = 1 };

/* Whether the code there, eight bytes that can be read, returns from a handler: mov x8,
 * #__NR_rt_sigreturn; svc #0 (arch/arm64/kernel/vdso/sigreturn.S). */
INLINE int machine_returns_from_signal(uintptr_t pc) {
    const uint32_t *code = (const uint32_t *)pc;
    return pc % sizeof *code == 0 && code[0] == 0xd2801168 && code[1] == 0xd4000001;
}

/* Whether what signs return addresses does so on this processor: else it does nothing. */
INLINE int machine_signs(void) {
    return (getauxval(AT_HWCAP) & HWCAP_PACA) != 0;
}

/* DW_CFA_AARCH64_negate_ra_state and negate_ra_state_with_pc (AADWARF64). */
INLINE int machine_is_signing_cfi(uint8_t opcode) {
    return opcode == 0x2d || opcode == 0x2c;
}

#endif
#endif
