/* SPDX-License-Identifier: MIT */
/* machine.h: register numbers and layouts of the CPU we are built for, each with its source. */
#ifndef RUNTIME_BASE_MACHINE_H
#define RUNTIME_BASE_MACHINE_H

#include "runtime/base/compiler.h"

#include <elf.h>
#include <stdint.h>

#if defined(__x86_64__)
enum {
    MACHINE_ELF = EM_X86_64,
    MACHINE_ADDRESS_BITS = 47, /* of what the kernel gives to who does not ask for more */
    /* System V AMD64 psABI, figure 3.36: DWARF register numbers. */
    MACHINE_DWARF_FP = 6,
    MACHINE_DWARF_SP = 7,
    MACHINE_DWARF_RA = 16,
    /* Kernel struct rt_sigframe / ucontext (arch/x86/include/uapi/asm/sigcontext.h): from the
     * word after the handler's return address, where rsp points in the restorer. */
    MACHINE_SIGNAL_FP = 40 + 8 * 10,
    MACHINE_SIGNAL_SP = 40 + 8 * 15,
    MACHINE_SIGNAL_PC = 40 + 8 * 16,
    /* libunwind-x86_64.h: UNW_X86_64_RIP, UNW_X86_64_RSP. */
    MACHINE_LIBUNWIND_PC = 16,
    MACHINE_LIBUNWIND_SP = 7,
    /* Relocations that hold the address of a function: called by, read from the GOT, in data. */
    MACHINE_RELOC_CALL = R_X86_64_JUMP_SLOT,
    MACHINE_RELOC_GOT = R_X86_64_GLOB_DAT,
    MACHINE_RELOC_DATA = R_X86_64_64,
};
#define MACHINE_NAME        "x86_64"
#define MACHINE_FIRST_GLIBC "GLIBC_2.2.5" /* the version of its oldest symbols */
#elif defined(__aarch64__)
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
};
#define MACHINE_NAME        "aarch64"
#define MACHINE_FIRST_GLIBC "GLIBC_2.17"
#else
#error "unknown machine"
#endif

/* Whether a return address on the stack may be replaced by another that leads to it: this machine
 * has code for it (stack/guard_cells.S), and neither does the hardware keep a stack of its own to
 * compare with (CET) nor is the address signed. */
int machine_can_patch_returns(void);

/* Whether there is an instruction before this address that calls and comes back to it. */
int machine_follows_call(uintptr_t pc);

/* A client request to valgrind (its manual, "The client request mechanism"): a number and five
 * arguments. 0 where valgrind does not run the program. */
uint64_t machine_ask_valgrind(const uint64_t request[6]);

/* Counters with one writer, but never torn for their readers. Changed in one instruction, which is
 * not locked: a handler on the writer's thread that changes it too comes before or after. */
INLINE void counter_add(uint64_t *counter, uint64_t value) {
#if defined(__x86_64__)
    __asm__("addq %1, %0" : "+m"(*counter) : "er"(value) : "cc");
#else
    __atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
#endif
}

/* The same, down. 1: it was smaller, and is now what it was plus 2^64 minus `value`. */
INLINE int counter_take(uint64_t *counter, uint64_t value) {
#if defined(__x86_64__)
    int is_smaller;
    __asm__("subq %2, %1" : "=@ccb"(is_smaller), "+m"(*counter) : "er"(value));
    return is_smaller;
#else
    return __atomic_fetch_sub(counter, value, __ATOMIC_RELAXED) < value;
#endif
}

INLINE void counter_increment(uint32_t *counter) {
#if defined(__x86_64__)
    __asm__("incl %0" : "+m"(*counter) : : "cc");
#else
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
#endif
}

/* Whether a < *b, of which another thread may be the writer. In one comparison: what is loaded by
 * itself, as compilers load atomically, takes an instruction more. */
INLINE int machine_is_less(int64_t a, const int64_t *b) {
#if defined(__x86_64__)
    int is_less;
    __asm__("cmpq %2, %1" : "=@ccl"(is_less) : "r"(a), "m"(*b));
    return is_less;
#else
    return a < LOAD_RELAXED(b);
#endif
}

INLINE int machine_is_greater(int64_t a, const int64_t *b) {
#if defined(__x86_64__)
    int is_greater;
    __asm__("cmpq %2, %1" : "=@ccg"(is_greater) : "r"(a), "m"(*b));
    return is_greater;
#else
    return a > LOAD_RELAXED(b);
#endif
}

/* For a file without frame pointers of its own: keeps the caller's, and leaves out the registers
 * that a function would have to save, which costs more than they save where there are enough. */
#if defined(__x86_64__) && !defined(__clang__)
#define MACHINE_RESERVE_REGISTERS()                                                                \
    register uintptr_t machine_fp __asm__("rbp");                                                  \
    register uintptr_t machine_r12 __asm__("r12");                                                 \
    register uintptr_t machine_r13 __asm__("r13");                                                 \
    register uintptr_t machine_r14 __asm__("r14");                                                 \
    register uintptr_t machine_r15 __asm__("r15")
#define MACHINE_CALLER_FP() machine_fp
#else
#define MACHINE_RESERVE_REGISTERS() _Static_assert(1, "nothing to reserve")
#define MACHINE_CALLER_FP()         (*(const uintptr_t *)__builtin_frame_address(0))
#endif

/* An instruction that stores a 32-bit constant to the stack. */
struct machine_store {
    uintptr_t start, end;
    uint32_t base_register; /* DWARF number: MACHINE_DWARF_SP or MACHINE_DWARF_FP */
    int32_t displacement;
};

/* The first store of `constant` in the code [start, end), which must be readable. 1, or 0: none (or
 * none that this machine can have). */
int machine_find_store(uintptr_t start, uintptr_t end, uint32_t constant,
                       struct machine_store *store);

#endif
