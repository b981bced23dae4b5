/* SPDX-License-Identifier: MIT */
/*
 * registers.c ROUNDS: what functions that are followed by name find in registers, and what their
 * callers find when they are back, is what they find alone: all general ones but r11, the x87 ones,
 * MXCSR, and the vector registers whole, as far as the processor has them. The functions are of
 * assembly, so no compiler has a say in it: they note what they find, leave something else, and
 * return. Some calls come from where calls came before, and some from new places, so that MemTrace
 * has little to do and much. Ends with 77 where the processor cannot save all its registers.
 */
#include <cpuid.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GENERAL = 9, AREA = 4096, HEADER = 512 };

/* A processor's registers: rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11; all others as XSAVE has them.
 */
struct registers {
    uint8_t area[AREA] __attribute__((aligned(64)));
    uint64_t general[GENERAL];
};

/* What a caller has; what its function found; what that left; and what the caller found then. */
struct registers given, found, left, back;
uint64_t components;
static struct component {
    unsigned size, offset;
} component[8]; /* where they lie in the area, from the third on */
uint64_t skew;  /* bytes that the stack is off its alignment */

/* Each is named to MemTrace as what it is called. None does anything for its caller. */
void state_alloc(void);
void state_resize(void);
void state_give(void);
void state_reset(void);

/* Calls the function with the registers of `given`, and notes them in `back`. */
void call_with_state(void (*function)(void));

#define STRING(x)         #x
#define TEXT(x)           STRING(x)
#define OFFSET_OF_GENERAL 4096
_Static_assert(offsetof(struct registers, general) == OFFSET_OF_GENERAL, "as assembly has it");

__asm__(
    ".macro general do, whose\n"
    "n = " TEXT(OFFSET_OF_GENERAL) "\n"
                                   ".irp name, rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11\n"
                                   ".ifc \\do, note\n"
                                   "mov %\\name, \\whose + n(%rip)\n"
                                   ".else\n"
                                   "mov \\whose + n(%rip), %\\name\n"
                                   ".endif\n"
                                   "n = n + 8\n"
                                   ".endr\n"
                                   ".endm\n"
                                   ".macro others instruction, whose\n"
                                   "mov components(%rip), %eax\n"
                                   "xor %edx, %edx\n"
                                   "\\instruction \\whose(%rip)\n"
                                   ".endm\n"
                                   ".text\n"
                                   ".irp name, state_alloc, state_resize, state_give, state_reset\n"
                                   ".globl \\name\n"
                                   ".type \\name, @function\n"
                                   "\\name:\n"
                                   ".cfi_startproc\n"
                                   "general note, found\n"
                                   "others xsave64, found\n"
                                   "others xrstor64, left\n"
                                   "general set, left\n"
                                   "ret\n"
                                   ".cfi_endproc\n"
                                   ".size \\name, . - \\name\n"
                                   ".endr\n"
                                   ".globl call_with_state\n"
                                   ".type call_with_state, @function\n"
                                   "call_with_state:\n"
                                   ".cfi_startproc\n"
                                   "push %rbp\n"
                                   ".cfi_def_cfa_offset 16\n"
                                   ".cfi_offset rbp, -16\n"
                                   "mov %rsp, %rbp\n"
                                   ".cfi_def_cfa_register rbp\n"
                                   "push %rbx\n"
                                   ".cfi_offset rbx, -24\n"
                                   "sub $520, %rsp\n"
                                   "fxsave64 (%rsp)\n" /* the C code's rounding */
                                   "mov %rdi, %rbx\n"
                                   "sub skew(%rip), %rsp\n"
                                   "others xrstor64, given\n"
                                   "general set, given\n"
                                   "call *%rbx\n"
                                   "general note, back\n"
                                   "others xsave64, back\n"
                                   "add skew(%rip), %rsp\n"
                                   "fxrstor64 (%rsp)\n"
                                   "add $520, %rsp\n"
                                   "pop %rbx\n"
                                   "pop %rbp\n"
                                   ".cfi_def_cfa rsp, 8\n"
                                   "ret\n"
                                   ".cfi_endproc\n"
                                   ".size call_with_state, . - call_with_state\n");

static uint64_t number(void) {
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return state ^ state >> 31;
}

/* Any content is one, but for a few words (Intel SDM volume 1, 13.4). */
static void fill(struct registers *registers) {
    uint64_t header[8] = {components};
    uint16_t control = 0x037f | (uint16_t)(number() % 4 << 10); /* x87: the rounding */
    uint8_t full = 0xff;                                        /* no place of its stack is empty */
    uint32_t mxcsr = 0x1f80 | (uint32_t)(number() % 4) << 13;
    for (size_t i = 0; i < sizeof *registers; i += sizeof(uint64_t)) {
        uint64_t word = number();
        memcpy((uint8_t *)registers + i, &word, sizeof word);
    }
    memset(registers->area, 0, 32);
    memcpy(registers->area, &control, sizeof control);
    memcpy(registers->area + 4, &full, sizeof full);
    memcpy(registers->area + 24, &mxcsr, sizeof mxcsr);
    for (size_t i = 0; i < 8; i++) {
        memset(registers->area + 32 + 16 * i + 10, 0, 6);
    }
    memcpy(registers->area + HEADER, header, sizeof header);
}

static void fail(const char *what, unsigned round, const char *which, size_t place) {
    printf("FAILED: round %u, %s: %s at %zu\n", round, what, which, place);
    exit(1);
}

/* Of one component of the area. */
static void compare(const struct registers *a, const struct registers *b, size_t at, size_t size,
                    unsigned round, const char *what) {
    for (size_t i = at; i < at + size; i++) {
        if (a->area[i] != b->area[i]) {
            fail(what, round, "a byte of the area of XSAVE", i);
        }
    }
}

static void compare_all(const struct registers *a, const struct registers *b, unsigned general,
                        unsigned round, const char *what) {
    compare(a, b, 0, 5, round, what);             /* x87: control, status, tags */
    compare(a, b, 24, 4, round, what);            /* MXCSR */
    compare(a, b, 32, 8 * 16 + 256, round, what); /* x87 and XMM registers */
    for (unsigned i = 2; i < 8; i++) {
        compare(a, b, component[i].offset, component[i].size, round, what);
    }
    for (unsigned i = 0; i < general; i++) {
        if (a->general[i] != b->general[i]) {
            fail(what, round, "a general register", i);
        }
    }
}

static const struct {
    void (*function)(void);
    const char *name;
} functions[] = {
    {state_reset, "reset"}, {state_alloc, "alloc"}, {state_resize, "resize"}, {state_give, "give"}};

/* A stack of its own for each `path`. */
static __attribute__((noinline)) void go_down(unsigned path, void (*function)(void)) {
    if (path > 1 && path % 2 == 0) {
        go_down(path / 2, function);
    } else if (path > 1) {
        go_down(path / 2, function);
        __asm__ volatile("" ::: "memory");
    } else {
        call_with_state(function);
    }
    __asm__ volatile("" ::: "memory");
}

/* Of a pool whose blocks lie apart. */
static uint64_t block(void) {
    enum { APART = 8192 };
    static char pool[128 * APART];
    return (uintptr_t)&pool[number() % (sizeof pool / APART) * APART];
}

static int know_components(void) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_OSXSAVE) == 0) {
        return 0;
    }
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    components = low & 0xe7; /* x87, XMM, YMM; masks, ZMM, the other 16 of them */
    for (unsigned i = 2; i < 8; i++) {
        if ((components >> i & 1) != 0) {
            __cpuid_count(0xd, i, component[i].size, component[i].offset, c, d);
        }
    }
    __cpuid_count(0xd, 0, a, b, c, d);
    return b <= AREA;
}

int main(int argc, char **argv) {
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
    if (!know_components()) {
        return 77;
    }
    for (unsigned round = 0; round < rounds; round++) {
        /* A reset is seldom, since it looks at the whole pool. */
        unsigned which = number() % 256 == 0 ? 0 : 1 + (unsigned)(number() % 3);
        const char *name = functions[which].name;
        fill(&given);
        fill(&left);
        skew = number() % 2 * 8;
        given.general[1] = block(); /* resize, give: which one */
        given.general[2] = number() % 5000;
        left.general[0] = number() % 8 != 0 ? block() : 0;
        go_down(number() % 4 != 0 ? 5 : 1 + (unsigned)(number() % 512), functions[which].function);
        compare_all(&given, &found, GENERAL - 1, round, name);
        compare_all(&left, &back, GENERAL - 1, round, name);
    }
    printf("%u rounds, components %#llx\n", rounds, (unsigned long long)components);
    return 0;
}
