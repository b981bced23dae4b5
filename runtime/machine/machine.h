/* SPDX-License-Identifier: MIT */
/*
 * machine.h: what differs from one CPU to another; the only place that asks which one it is. Each
 * has x.h (constants and what is inlined), x.c (reading its code), x_entries.S and, where there
 * are guards, x_guards.S.
 *
 * Of each machine are told
 *   MACHINE_ELF, MACHINE_NAME, MACHINE_FIRST_GLIBC   its ELF number, name, oldest symbols
 *   MACHINE_ADDRESS_BITS        of what the kernel gives to who does not ask for more
 *   MACHINE_DWARF_{FP,SP,RA}    DWARF's numbers of registers
 *   MACHINE_CALL_PUSHES         a call pushes the return address: it lies right below the CFA. Else
 *                               it is in a register first, and functions save it above fp
 *   MACHINE_SIGNAL_{FP,SP,PC}   where the kernel's signal frame has the registers, from the stack
 *                               pointer with which a handler returns
 *   MACHINE_RELOC_{CALL,GOT,DATA}   relocations that hold the address of a function
 *   MACHINE_HAS_GUARDS          there is code that may stand in for return addresses on the stack
 *                               (in the runtime for glibc as a shared library)
 *   MACHINE_KNOWS_GO            the functions on Go below know its runtime's code
 *   MACHINE_STORES_CONSTANTS    one instruction stores 32 bits that it holds to the stack
 *   MACHINE_GUARD_{CELL,COUNT}  measures of the guards' code (stack/guard.h)
 *   MACHINE_NOTES_REGISTERS     machine_note_registers() fills libunwind's context, which has no
 *                               function of its own for it
 *   MACHINE_LONGEST_CALL        bytes of its longest call instruction
 * and the functions below, and what few machines have in a way of their own (further down). All
 * that is inlined costs nothing where there is nothing to do. linked.h is what those share whose
 * calls push nothing.
 */
#ifndef RUNTIME_MACHINE_MACHINE_H
#define RUNTIME_MACHINE_MACHINE_H

#include "memtrace/allocators.h"
#include "runtime/base/compiler.h"

#include <elf.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "runtime/machine/x86_64.h"
#elif defined(__aarch64__)
#include "runtime/machine/aarch64.h"
#elif defined(__riscv) && __riscv_xlen == 64
#include "runtime/machine/riscv64.h"
#elif defined(__mips64) && _MIPS_SIM == _ABI64
#include "runtime/machine/mips64.h"
#elif defined(__arm__)
#include "runtime/machine/arm.h"
#else
#error "unknown machine"
#endif

#ifndef MACHINE_NOTES_REGISTERS
#define MACHINE_NOTES_REGISTERS 0
INLINE void machine_note_registers(void *context) {
    (void)context;
}
#endif

/* Of a machine whose header does not say otherwise: words of 64 signals in a mask of the kernel's;
 * whether its struct stat is another than the C library's, which
 * is filled by statx then. */
#ifndef MACHINE_SIGNAL_WORDS
#define MACHINE_SIGNAL_WORDS 1
#endif
#ifndef MACHINE_HAS_OWN_STAT
#define MACHINE_HAS_OWN_STAT 0
#endif

/* Of the function that MACHINE_FRAME() stands in: where it has its frame pointer's old value, and
 * above it its return address. And what machine_frame_sp() finds again, as the slot of a frame
 * whose caller is known. (marked.h has its own.) */
#ifndef MACHINE_MARKS_FRAMES
INLINE const uintptr_t *machine_frame_record(uintptr_t frame) {
    return (const uintptr_t *)frame;
}

INLINE uintptr_t machine_marked_slot(uintptr_t slot, struct machine_sp kept) {
    (void)kept;
    return slot;
}
#endif

/* What its vDSO calls clock_gettime. */
#ifndef MACHINE_VDSO_CLOCK
#define MACHINE_VDSO_CLOCK "__vdso_clock_gettime"
#endif

/* Whether functions that keep a frame pointer make a chain: so many bytes from where it points to
 * lies the caller's, and the return address right above. And whether something may be guessed of
 * code without tables: it keeps one, or has saved nothing; else stubs of the linker's are known. */
#ifndef MACHINE_HAS_FP_CHAIN
#define MACHINE_HAS_FP_CHAIN 1
#endif
#ifndef MACHINE_FP_RECORD
#define MACHINE_FP_RECORD 0
#endif
#ifndef MACHINE_GUESSES
#define MACHINE_GUESSES 1
#endif
#ifndef MACHINE_KNOWS_STUBS
#define MACHINE_KNOWS_STUBS 0
#endif

/* Where a function of such a chain has its return address, by its own frame pointer. */
INLINE uintptr_t machine_fp_slot(uintptr_t fp) {
    return fp + (uintptr_t)(intptr_t)MACHINE_FP_RECORD + sizeof(uintptr_t);
}

/* Whether the code at `pc`, whose page can be read, is a stub by which functions of other objects
 * are called: the return address is in its register. */
int machine_is_stub(uintptr_t pc);

/* Where the guards' table lies. */
#ifndef MACHINE_GUARD_TABLE
#define MACHINE_GUARD_TABLE
#endif

/* Functions may sign the return addresses that they save: before any is read, machine_start()
 * learns what of them is the address; whether this processor signs. Of call frame information: the
 * instruction that says that they are signed from here on, or no longer. */
#ifndef MACHINE_MAY_SIGN
#define MACHINE_MAY_SIGN 0
INLINE void machine_start(void) {
}
INLINE int machine_signs(void) {
    return 0;
}
INLINE int machine_is_signing_cfi(uint8_t opcode) {
    (void)opcode;
    return 0;
}
#endif

/* Puts `value` into a byte that is *old; else tells in *old what it is, or that it is changing. 1,
 * or 0. */
#ifndef MACHINE_EXCHANGES_WORDS_ONLY
INLINE int machine_replace_byte(uint8_t *byte, uint8_t *old, uint8_t value) {
    return __atomic_compare_exchange_n(byte, old, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
#endif

/* The type of sections that debuggers read. */
#ifndef MACHINE_DEBUG_SECTION
#define MACHINE_DEBUG_SECTION SHT_PROGBITS
#endif

/* The GOT has a word for each of the last symbols, in their order, and no relocation tells of it
 * (DT_MIPS_GOTSYM). Relocations have their addends where they are applied, and what their r_info
 * says is asked of functions. */
#ifndef MACHINE_GOT_IS_BY_SYMBOLS
#define MACHINE_GOT_IS_BY_SYMBOLS 0

INLINE uint32_t machine_relocation_type(uint64_t info) {
    return (uint32_t)(sizeof(uintptr_t) == 8 ? ELF64_R_TYPE(info) : ELF32_R_TYPE(info));
}

INLINE uint32_t machine_relocation_symbol(uint64_t info) {
    return (uint32_t)(sizeof(uintptr_t) == 8 ? ELF64_R_SYM(info) : ELF32_R_SYM(info));
}
#endif

/* A block's address as the shadow heap knows it: an allocator may put a tag into the pointers that
 * it returns, another one each time. */
#ifndef MACHINE_TAGS_POINTERS
INLINE uintptr_t machine_untagged(const void *pointer) {
    return (uintptr_t)pointer;
}
#endif

enum { MACHINE_ELF_CLASS = sizeof(uintptr_t) == 8 ? ELFCLASS64 : ELFCLASS32 };

/* C++'s name of a function with an argument of type size_t, whose letter stands in between. */
#ifndef MACHINE_OF_SIZE
#define MACHINE_OF_SIZE(before, after) before##m##after
#endif

/* A system call's arguments of 64 bits take two of its six, the first of them one with an even
 * number. */
#ifndef MACHINE_SPLITS_ARGUMENTS
#define MACHINE_SPLITS_ARGUMENTS 0
#endif

/* The C library's off_t has 32 bits, and mmap64 is another function than mmap. */
#ifndef MACHINE_HAS_SHORT_OFFSETS
#define MACHINE_HAS_SHORT_OFFSETS 0
#endif

/* What a machine has not is not called, and need not be there: functions of x.c that say so. */

/* Requests to valgrind. */
#ifndef MACHINE_ASKS_VALGRIND
#define MACHINE_ASKS_VALGRIND 0
#endif

/* The code of a function may tell how far its frame pointer is above its stack pointer. */
#ifndef MACHINE_TELLS_FP_ABOVE_SP
#define MACHINE_TELLS_FP_ABOVE_SP 0
#endif

/* A pass of a compiler may have made frame words. */
#ifndef MACHINE_HAS_WORDS
#define MACHINE_HAS_WORDS 1
#endif

/* What unwinds stacks is ARM's table of exceptions (stack/exidx.h), not .eh_frame. */
#ifndef MACHINE_HAS_EXIDX
#define MACHINE_HAS_EXIDX 0
#endif

/* Functions keep their frame pointer in one of two registers: MACHINE_DWARF_FP and
 * MACHINE_DWARF_SECOND_FP, which is kept with the stack pointer. (Rules tell where both are saved
 * then, where others tell of frame words: MACHINE_HAS_WORDS is 0.) */
#ifndef MACHINE_HAS_SECOND_FP
#define MACHINE_HAS_SECOND_FP   0
#define MACHINE_DWARF_SECOND_FP UINT32_MAX

INLINE uintptr_t machine_second_fp(struct machine_sp kept) {
    (void)kept;
    return 0;
}

INLINE struct machine_sp machine_keep_both(uintptr_t sp, uintptr_t second_fp) {
    (void)second_fp;
    return machine_keep_sp(sp);
}
#endif

/* Of a function without tables that calls, in words from its stack pointer then: where it saved its
 * return address, and its CFA; and so many words below the return address its frame pointers, 0: it
 * did not. Read from its code before the call that comes back to `pc`, from `low` on. 1, or 0. */
struct machine_prologue {
    uint32_t slot, cfa, fp_below, second_fp_below;
};
enum { MACHINE_PROLOGUE = 1024 }; /* bytes of code, at most */
#ifndef MACHINE_READS_PROLOGUES
#define MACHINE_READS_PROLOGUES 0 /* else the function is there */
#endif
int machine_read_prologue(uintptr_t pc, uintptr_t low, struct machine_prologue *prologue);

/* Where the kernel's signal frame has registers: MACHINE_SIGNAL_ numbers count from here. `pc`: to
 * where the handler returns, with this stack pointer. */
#ifndef MACHINE_HAS_TWO_SIGNAL_FRAMES
#define MACHINE_HAS_TWO_SIGNAL_FRAMES 0
INLINE uintptr_t machine_signal_registers(uintptr_t pc, uintptr_t frame) {
    (void)pc;
    return frame;
}
#endif

/* Whether there is an instruction before this address that calls and comes back to it.
 * MACHINE_LONGEST_CALL bytes before it can be read. */
int machine_follows_call(uintptr_t pc);

/* How Go's runtime.asmcgocall comes back from C, which it called on the thread's stack, to its
 * frame on the goroutine's. That may have been moved meanwhile, so fp may not lead there any more.
 * The new sp is the word at sp + goroutine, plus `high` (there the goroutine keeps the end of its
 * stack), less the word at sp + depth. */
struct machine_way_back {
    uint8_t goroutine, high, depth;
    uint8_t slot;     /* where its return address lies, from the new sp on */
    uint8_t saves_fp; /* below that lies fp, which x86-64 has kept since Go 1.21 */
};

enum { MACHINE_WAY_BACK = 64 }; /* bytes of code, at most */

/* Whether the code [pc, end), to which C returns, is that. (MACHINE_KNOWS_GO) */
int machine_read_way_back(uintptr_t pc, uintptr_t end, struct machine_way_back *way);

/* How Go's crosscall2, which C calls to enter Go, goes back to C, where fp is not kept side by side
 * with the return address as Go does it: fp lies at sp + fp, the return address above it, and C
 * goes on with sp + size. */
struct machine_way_out {
    uint16_t fp, size;
};

/* Whether the code [pc, end), to which Go returns, is that. (MACHINE_KNOWS_GO, where calls push
 * nothing) */
int machine_read_way_out(uintptr_t pc, uintptr_t end, struct machine_way_out *way);
/* How far above its return address the frame of Go's function ends which goes on with the code [pc,
 * end); 0: that is not told. (The same) */
uintptr_t machine_go_frame(uintptr_t pc, uintptr_t end);

/* A client request to valgrind (its manual, "The client request mechanism"): a number and five
 * arguments. 0 where valgrind does not run the program. (MACHINE_ASKS_VALGRIND) */
#ifndef MACHINE_VALGRIND_INLINE
uint64_t machine_ask_valgrind(const uint64_t request[6]);
#endif

/* An instruction that tells where a frame word lies (stack/frame_word.h). */
struct machine_store {
    uintptr_t start, end;
    uint32_t base_register; /* DWARF number: MACHINE_DWARF_SP or MACHINE_DWARF_FP */
    int32_t displacement;
};

/* The first store of `constant`, or where the machine stores none of zero that `constant` marks, in
 * the code [start, end), which must be readable. 1, or 0: none. (MACHINE_HAS_WORDS) */
int machine_find_store(uintptr_t start, uintptr_t end, uint32_t constant,
                       struct machine_store *store);

/* How far the frame pointer is above the stack pointer at `end`, by the code before it: that of a
 * function that begins at `start`, has set it, and keeps its variables at one distance from either.
 * -1: the code does not tell. (MACHINE_TELLS_FP_ABOVE_SP) */
int64_t machine_fp_above_sp(uintptr_t start, uintptr_t end);

/* What functions that allocate are led to (follow/allocator_calls.c), where the machine has that
 * (x_allocators.S); else its address is NULL. They call
 *     int allocator_returned_fast(struct allocator_call *call, uint64_t result)
 *     int allocator_resizes_fast(struct allocator_call *call)
 *     int allocator_leaves_fast(struct allocator_call *call)
 * with the call that they were led from; and, where these return 0, functions without `_fast` of
 * the same arguments. Those of the first kind (follow/allocators_fast.c) use general registers
 * alone: no others are saved before them. */
extern const struct memtrace_allocator_entries machine_allocator_entries
    __attribute__((weak, visibility("hidden")));

/* Once, before anything is led to them. */
extern void machine_prepare_allocators(void) __attribute__((weak, visibility("hidden")));

/* A call of a function that was led to us, as the entries leave it on the stack. */
struct allocator_call {
    uint64_t taken[8]; /* for who wants to keep something from before the function to behind it */
    uint64_t number[MEMTRACE_ALLOCATOR_NUMBERS]; /* its arguments */
    uint64_t site;                               /* of the runtime's */
    uint64_t scratch;                            /* a register of the caller's */
    uint64_t frame[2];                           /* its frame pointer and return address */
};

#endif
