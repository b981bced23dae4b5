/* SPDX-License-Identifier: MIT */
/* arm.c: reading ARM's and Thumb's code (Arm ARM, F3 and F4). See machine.h. */
#include "runtime/machine/machine.h"

#include <string.h>

/* By either set of instructions: nobody says any more which one `pc` was called from. */
int machine_follows_call(uintptr_t pc) {
    uint16_t halves[2];
    uint32_t code;
    memcpy(halves, (const void *)(pc - sizeof halves), sizeof halves);
    if ((halves[1] & 0xff87) == 0x4780 || /* Thumb: blx register */
        ((halves[0] & 0xf800) == 0xf000 && (halves[1] & 0xc000) == 0xc000)) { /* bl, blx */
        return 1;
    }
    code = halves[0] | (uint32_t)halves[1] << 16;
    return (code & 0x0f000000) == 0x0b000000 || (code & 0xfe000000) == 0xfa000000 || /* bl, blx */
           (code & 0x0ffffff0) == 0x012fff30; /* blx register */
}

/* --- what a function's first instructions saved ------------------------------------------------
 *
 * Of Thumb code: the nearest instruction before the call that pushes lr, and what moves the stack
 * pointer from there on. Behind a return it is again where it was before.
 */

enum { LR = 14, FP = MACHINE_DWARF_FP, SECOND_FP = MACHINE_DWARF_SECOND_FP };

static int is_long(uint16_t half) {
    return half >> 11 >= 0x1d;
}

/* The registers that an instruction pushes; 0: it is another. */
static uint32_t pushed(const uint16_t *at) {
    if ((at[0] & 0xfe00) == 0xb400) { /* push, of r0 to r7 and lr */
        return (at[0] & 0xff) | (uint32_t)(at[0] >> 8 & 1) << LR;
    }
    if (at[0] == 0xe92d) { /* stmdb sp! */
        return at[1] & 0x5fff;
    }
    return at[0] == 0xf84d && at[1] == 0xed04 ? UINT32_C(1) << LR : 0; /* str lr, [sp, #-4]! */
}

static int32_t arm_words(uint32_t registers) {
    return __builtin_popcount(registers);
}

/* A constant of 12 bits, as data processing instructions have it (F1.4.2, "modified immediate
 * constants"), where its halves are alike or it is shifted. */
static uint32_t expand(uint32_t bits) {
    uint32_t byte = bits & 0xff;
    uint32_t shifted = 0x80 | (bits & 0x7f);
    uint32_t shift = bits >> 7;
    switch (bits >> 8) {
    case 0:
        return byte;
    case 1:
        return byte | byte << 16;
    case 2:
        return byte << 8 | byte << 24;
    case 3:
        return byte * UINT32_C(0x01010101);
    default:
        return shifted >> shift | shifted << (32 - shift);
    }
}

/* How many words further down the stack pointer is behind this instruction. */
static int32_t arm_moved(const uint16_t *at) {
    uint32_t bits = (at[0] & 0x400u) << 1 | (at[1] & 0x7000u) >> 4 | (at[1] & 0xffu);
    if ((at[0] & 0xff00) == 0xb000) { /* add, sub sp, #imm7 */
        int32_t words = at[0] & 0x7f;
        return (at[0] & 0x80) != 0 ? words : -words;
    }
    if ((at[0] & 0xffbf) == 0xed2d && (at[1] & 0x0e00) == 0x0a00) { /* vpush */
        return at[1] & 0xff;
    }
    if ((at[1] & 0x8f00) != 0x0d00) { /* (with sp as destination) */
        return arm_words(pushed(at));
    }
    switch (at[0] & 0xfbff) {
    case 0xf1ad:
        return (int32_t)expand(bits) / 4;
    case 0xf2ad:
        return (int32_t)bits / 4;
    case 0xf10d:
        return -(int32_t)expand(bits) / 4;
    case 0xf20d:
        return -(int32_t)bits / 4;
    default:
        return arm_words(pushed(at));
    }
}

static int returns(const uint16_t *at) {
    return (at[0] & 0xff00) == 0xbd00 || (at[0] == 0xe8bd && (at[1] & 0x8000) != 0);
}

static uint32_t below(uint32_t registers, uint32_t number) {
    uint32_t above = registers >> number; /* itself and those above it */
    return (above & 1) != 0 ? (uint32_t)arm_words(above >> 1) : 0;
}

int machine_read_prologue(uintptr_t pc, uintptr_t low, struct machine_prologue *prologue) {
    const uint16_t *end = (const uint16_t *)pc;
    const uint16_t *at = end - 2; /* its call has two halves, or one */
    uint32_t registers;
    int32_t depth;
    int32_t body;
    while ((uintptr_t)at > low && (pushed(at) >> LR & 1) == 0) {
        at--;
    }
    registers = pushed(at);
    if (registers >> LR != 1) {
        return 0;
    }
    prologue->cfa = (uintptr_t)at > low + 2 && at[-1] >> 4 == 0xb40 ? pushed(at - 1) : 0;
    prologue->cfa = (uint32_t)arm_words(prologue->cfa); /* arguments without names */
    body = depth = arm_words(registers);
    for (at += 1 + is_long(at[0]); at + 1 < end; at += 1 + is_long(at[0])) {
        depth = returns(at) ? body : depth + arm_moved(at);
        body = depth > body ? depth : body;
    }
    prologue->slot = (uint32_t)depth - 1;
    prologue->cfa += (uint32_t)depth;
    prologue->fp_below = below(registers, FP);
    prologue->second_fp_below = below(registers, SECOND_FP);
    return depth >= arm_words(registers);
}
