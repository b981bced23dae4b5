/* SPDX-License-Identifier: MIT */
/* aarch64.c: reading AArch64's code (Arm ARM, C4.1 "A64 instruction set encoding"). See machine.h.
 */
#include "runtime/machine/machine.h"

#include <string.h>

uintptr_t machine_code_bits = ((uintptr_t)1 << MACHINE_ADDRESS_BITS) - 1;

int machine_follows_call(uintptr_t pc) {
    uint32_t code;
    memcpy(&code, (const void *)(pc - sizeof code), sizeof code);
    return (code & 0xfc000000) == 0x94000000 || /* bl */
           (code & 0xfefff800) == 0xd63f0800 || /* blraa, blrab and their like */
           (code & 0xfffffc1f) == 0xd63f0000;   /* blr */
}

/* --- Go --------------------------------------------------------------------------------------- */

enum { WAY_BACK = MACHINE_WAY_BACK / 4, LONGEST_WAY = 96 }; /* instructions */

/* LDR Xt, [Xn, #imm12 * 8]; *displacement: in bytes. */
static int is_load(uint32_t code, uint32_t to, uint32_t base, uint8_t *displacement) {
    uint32_t imm = (code >> 10) & 0xfff;
    *displacement = (uint8_t)(imm * 8);
    return (code & 0xffc003ff) == (0xf9400000 | base << 5 | to) && imm < 32;
}

/* LDUR X29, [SP, #-8], or LDP X29, X30, [SP, #-8]: what a function of Go's has kept below its
 * return address. */
static int restores_fp(uint32_t code) {
    return code == 0xf85f83fd || code == 0xa97ffbfd;
}

/* go/src/runtime/asm_arm64.s, asmcgocall, behind its call: the goroutine is in x28. */
int machine_read_way_back(uintptr_t pc, uintptr_t end, struct machine_way_back *way) {
    const uint32_t *code = (const uint32_t *)pc;
    *way = (struct machine_way_back){0};
    if (pc % sizeof *code != 0 || end - pc < MACHINE_WAY_BACK || end < pc) {
        return 0;
    }
    if (code[0] != 0xaa0003e9 || !is_load(code[1], 28, MACHINE_DWARF_SP, &way->goroutine) ||
        code[2] >> 26 != 0x25 || /* BL save_g */
        !is_load(code[3], 5, 28, &way->high) ||
        !is_load(code[4], 6, MACHINE_DWARF_SP, &way->depth) || code[5] != 0xcb0600a5 ||
        code[6] != 0xaa0903e0 || code[7] != 0x910000bf /* MOV SP, X5 */) {
        return 0;
    }
    for (size_t i = 8; i < WAY_BACK; i++) {
        way->saves_fp |= restores_fp(code[i]);
    }
    return 1;
}

/* ADD SP, SP, #imm12; 0: another instruction. */
static uint32_t adds_to_sp(uint32_t code) {
    return (code & 0xffc003ff) == 0x910003ff ? (code >> 10) & 0xfff : 0;
}

/* go/src/runtime/cgo/asm_arm64.s, crosscall2, behind its call of runtime.cgocallback: loads x19 to
 * x28, d8 to d15, then X29 and X30, and adds to SP. */
int machine_read_way_out(uintptr_t pc, uintptr_t end, struct machine_way_out *way) {
    enum { REGISTERS = 9 };
    const uint32_t *code = (const uint32_t *)pc;
    if (pc % sizeof *code != 0 || end < pc || end - pc < (REGISTERS + 2) * sizeof *code ||
        (code[0] & 0xffc07fff) != 0xa94053f3 /* LDP X19, X20, [SP, #imm7 * 8] */ ||
        (code[REGISTERS] & 0xffc07fff) != 0xa9407bfd /* LDP X29, X30 */) {
        return 0;
    }
    way->fp = (uint16_t)(((code[REGISTERS] >> 15) & 0x3f) * 8);
    way->size = (uint16_t)adds_to_sp(code[REGISTERS + 1]);
    return way->size > way->fp;
}

/* The first return: LDR X30, [SP], #imm9, or ADD SP, SP, #imm12, before RET. */
uintptr_t machine_go_frame(uintptr_t pc, uintptr_t end) {
    const uint32_t *code = (const uint32_t *)pc;
    for (size_t i = 1; i < LONGEST_WAY && (uintptr_t)(code + i + 1) <= end; i++) {
        if (code[i] == 0xd65f03c0) {
            uint32_t post =
                (code[i - 1] & 0xfff00fff) == 0xf84007fe ? (code[i - 1] >> 12) & 0xff : 0;
            return post != 0 ? post : adds_to_sp(code[i - 1]);
        }
    }
    return 0;
}

#define OF_SCALED   0xffc00000u /* the bits of the operation, with an address [Xn, #imm12 * size] */
#define OF_UNSCALED 0xffe00c00u /* and with [Xn, #imm9] */
#define STR_W       0xb9000000u
#define STUR_W      0xb8000000u
#define PRFM        0xf9800000u
#define PRFUM       0xf8800000u
#define ZERO        31 /* WZR */
#define PLIL3KEEP   12 /* what PRFM is to do: prepare for instructions to be run there */

/* Whether the instruction is `scaled` or `unscaled`, with `operand` for its first, by sp or x29. */
static int decode_address(uint32_t code, uint32_t scaled, uint32_t unscaled, uint32_t operand,
                          struct machine_store *store) {
    uint32_t base = (code >> 5) & 31;
    if ((code & 31) != operand || (base != MACHINE_DWARF_SP && base != MACHINE_DWARF_FP)) {
        return 0;
    }
    if ((code & OF_SCALED) == scaled) {
        store->displacement = (int32_t)((code >> 10) & 0xfff) << (code >> 30);
    } else if ((code & OF_UNSCALED) == unscaled) {
        uint32_t bits = (code >> 12) & 0x1ff;
        store->displacement = bits < 0x100 ? (int32_t)bits : (int32_t)bits - 0x200;
    } else {
        return 0;
    }
    store->base_register = base;
    return 1;
}

/* GCC's pass: a store of zero, and right behind it MOVZ WZR, #constant. Clang's: a prefetch of the
 * word. How many instructions it is, or 0. */
static uint32_t aarch64_decode_store(const uint32_t *code, uintptr_t end, uint32_t constant,
                                     struct machine_store *store) {
    const uint32_t mark = 0x5280001f | (constant & 0xffff) << 5;
    if ((uintptr_t)(code + 2) <= end && code[1] == mark) {
        return decode_address(code[0], STR_W, STUR_W, ZERO, store) ? 2 : 0;
    }
    return decode_address(code[0], PRFM, PRFUM, PLIL3KEEP, store) ? 1 : 0;
}

int machine_find_store(uintptr_t start, uintptr_t end, uint32_t constant,
                       struct machine_store *store) {
    const uint32_t *code = (const uint32_t *)((start + 3) & ~(uintptr_t)3);
    for (; (uintptr_t)(code + 1) <= end; code++) {
        uint32_t length = aarch64_decode_store(code, end, constant, store);
        if (length != 0) {
            store->start = (uintptr_t)code;
            store->end = (uintptr_t)(code + length);
            return 1;
        }
    }
    return 0;
}

/* As Clang makes code: ADD X29, SP, #distance, once; then, in the same straight line, SUB SP, SP,
 * #bytes, as often as it takes. */
int64_t machine_fp_above_sp(uintptr_t start, uintptr_t end) {
    int64_t distance = 0;
    int is_set = 0;
    int may_repeat = 0;
    for (const uint32_t *code = (const uint32_t *)((start + 3) & ~(uintptr_t)3);
         (uintptr_t)(code + 1) <= end; code++) {
        int64_t bytes = (int64_t)((*code >> 10) & 0xfff) << (*code >> 22 & 1 ? 12 : 0);
        if ((*code & 0xff8003ff) == 0x910003fd) { /* ADD X29, SP, #imm */
            if (is_set) {
                return -1;
            }
            is_set = 1;
            may_repeat = 0;
            distance = bytes;
        } else if ((*code & 0xff8003ff) == 0xd10003ff) { /* SUB SP, SP, #imm */
            if (is_set && may_repeat) {
                return -1;
            }
            distance += is_set ? bytes : 0;
        } else if ((*code & 0xffe0f81f) ==
                   0x0420501f) { /* ADDVL SP, Xn, #imm: by as much as the machine has */
            return -1;
        } else if ((*code & 0x1c000000) == 0x14000000) { /* a branch, or a system instruction */
            may_repeat = 1;
        }
    }
    return is_set ? distance : -1;
}
