/* SPDX-License-Identifier: MIT */
/* x86_64.h: x86-64, for machine.h, where it is told what all this is for; the first part also for
 * assembly. */
#ifndef RUNTIME_MACHINE_X86_64_H
#define RUNTIME_MACHINE_X86_64_H

#define MACHINE_GUARD_CELL 16
#ifndef MACHINE_GUARD_COUNT
#define MACHINE_GUARD_COUNT 16384 /* a large C++ program has some thousand calls that want one */
#endif

#ifndef __ASSEMBLER__
#include "runtime/base/compiler.h"

#include <elf.h>
#include <stdint.h>
#include <sys/syscall.h>

enum {
    MACHINE_ELF = EM_X86_64,
    MACHINE_ADDRESS_BITS = 47,
    /* System V AMD64 psABI, figure 3.36. */
    MACHINE_DWARF_FP = 6,
    MACHINE_DWARF_SP = 7,
    MACHINE_DWARF_RA = 16,
    MACHINE_CALL_PUSHES = 1,
    /* Kernel struct rt_sigframe / ucontext (arch/x86/include/uapi/asm/sigcontext.h): from the
     * word after the handler's return address, where rsp points in the restorer. */
    MACHINE_SIGNAL_FP = 40 + 8 * 10,
    MACHINE_SIGNAL_SP = 40 + 8 * 15,
    MACHINE_SIGNAL_PC = 40 + 8 * 16,
    /* libunwind-x86_64.h: UNW_X86_64_RIP, UNW_X86_64_RSP. */
    MACHINE_LIBUNWIND_PC = 16,
    MACHINE_LIBUNWIND_SP = 7,
    /* Called by, read from the GOT, in data. */
    MACHINE_RELOC_CALL = R_X86_64_JUMP_SLOT,
    MACHINE_RELOC_GOT = R_X86_64_GLOB_DAT,
    MACHINE_RELOC_DATA = R_X86_64_64,
    MACHINE_LONGEST_CALL = 7,
    MACHINE_HAS_GUARDS = 1,
    MACHINE_KNOWS_GO = 1,
    MACHINE_STORES_CONSTANTS = 1,
};
#define MACHINE_NAME          "x86_64"
#define MACHINE_FIRST_GLIBC   "GLIBC_2.2.5"
#define MACHINE_ASKS_VALGRIND 1

/* --- system calls ----------------------------------------------------------------------------- */

INLINE long machine_call(long n, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Whether the hardware compares this thread's return addresses with a stack of its own (CET;
 * arch/x86/include/uapi/asm/prctl.h). Asked by `call`, since a filter may forbid it. */
INLINE int machine_has_shadow_stack(long (*call)(long, long, long, long, long, long, long)) {
    enum { ARCH_SHSTK_STATUS = 0x5005, ARCH_SHSTK_SHSTK = 1 };
    uint64_t features = 0;
    return call(SYS_arch_prctl, ARCH_SHSTK_STATUS, (long)&features, 0, 0, 0, 0) == 0 &&
           (features & ARCH_SHSTK_SHSTK) != 0;
}

/* --- counters --------------------------------------------------------------------------------- */

/* Counters with one writer, but never torn for their readers. Changed in one instruction, which is
 * not locked: a handler on the writer's thread that changes it too comes before or after. */
INLINE void counter_add(uint64_t *counter, uint64_t value) {
    __asm__("addq %1, %0" : "+m"(*counter) : "er"(value) : "cc");
}

/* The same, down. 1: it was smaller, and is now what it was plus 2^64 minus `value`. */
INLINE int counter_take(uint64_t *counter, uint64_t value) {
    int is_smaller;
    __asm__("subq %2, %1" : "=@ccb"(is_smaller), "+m"(*counter) : "er"(value));
    return is_smaller;
}

INLINE void counter_increment(uint32_t *counter) {
    __asm__("incl %0" : "+m"(*counter) : : "cc");
}

/* Whether a < *b, of which another thread may be the writer. In one comparison: what is loaded by
 * itself, as compilers load atomically, takes an instruction more. */
INLINE int machine_is_less(int64_t a, const int64_t *b) {
    int is_less;
    __asm__("cmpq %2, %1" : "=@ccl"(is_less) : "r"(a), "m"(*b));
    return is_less;
}

INLINE int machine_is_greater(int64_t a, const int64_t *b) {
    int is_greater;
    __asm__("cmpq %2, %1" : "=@ccg"(is_greater) : "r"(a), "m"(*b));
    return is_greater;
}

/* --- frames ----------------------------------------------------------------------------------- */

/* The stack pointer with which a frame goes on need not be kept: it lies right above the return
 * address that the call pushed. */
struct machine_sp {};

INLINE struct machine_sp machine_keep_sp(uintptr_t sp) {
    (void)sp;
    return (struct machine_sp){};
}

/* Of the frame whose return address was read at `slot`. */
INLINE uintptr_t machine_sp(uintptr_t slot, struct machine_sp kept) {
    (void)kept;
    return slot + sizeof(uintptr_t);
}

INLINE int machine_same_sp(struct machine_sp a, struct machine_sp b) {
    (void)a;
    (void)b;
    return 1;
}

/* Where its return address is while its function has not saved it: an interrupted frame's. 0: not
 * known, or nowhere. */
INLINE uintptr_t machine_link(struct machine_sp kept) {
    (void)kept;
    return 0;
}

/* The address that a word tells which was read as a return address. */
INLINE uintptr_t machine_plain(uintptr_t word) {
    return word;
}

/* The function that this stands in, by which its caller is found; its frame pointer must be kept.
 */
#define MACHINE_FRAME() ((uintptr_t)__builtin_frame_address(0))

INLINE struct machine_sp machine_frame_sp(uintptr_t frame) {
    (void)frame;
    return (struct machine_sp){};
}

/* --- fast halves (entry/fast.c) --------------------------------------------------------------- */

/* For a file without frame pointers of its own: keeps the caller's, and leaves out the registers
 * that a function would have to save, which costs more than they save where there are enough. */
#ifndef __clang__
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

/* Where the caller of this function is, in a form of which two can be compared: the slot. */
#define MACHINE_PLACE() ((uintptr_t)__builtin_dwarf_cfa() - sizeof(uintptr_t))

/* The return address of the function at that place, in which this stands. */
#define MACHINE_RETURNS_TO(place) (*(const uintptr_t *)(place))

INLINE uintptr_t machine_place_of(uintptr_t slot, struct machine_sp kept) {
    (void)kept;
    return slot;
}

/* --- signals, tables -------------------------------------------------------------------------- */

/* Whether the kernel's signal frames are found by code that no table describes: handlers return by
 * code of the C library. */
enum { MACHINE_HAS_SIGNAL_CODE = 0 };

/* mov $SYS_rt_sigreturn, %rax (of which there are two forms); syscall. 8 bytes there can be read.
 */
INLINE int machine_returns_from_signal(uintptr_t pc) {
    const uint64_t words = *(const uint64_t *)pc;
    return words == UINT64_C(0x0f0000000fc0c748) ||
           (words & UINT64_C(0xffffffffffffff)) == UINT64_C(0x050f0000000fb8);
}

/* Of a kernel's signal frame at this stack pointer, of the frame that it interrupted. */
INLINE struct machine_sp machine_interrupted_sp(uintptr_t frame, uintptr_t sp) {
    (void)frame;
    return machine_keep_sp(sp);
}

#endif
#endif
