/* SPDX-License-Identifier: MIT */
/* riscv64.c: reading RISC-V's code (RISC-V unprivileged ISA, chapters "RV32/64G instruction set
 * listings" and "C extension"), whose instructions have 2 or 4 bytes. See machine.h. */
#include "runtime/machine/machine.h"

#include <string.h>

enum { ZERO = 0, RA = MACHINE_DWARF_RA, SP = MACHINE_DWARF_SP, S0 = MACHINE_DWARF_FP };

static uint32_t load_code(uintptr_t pc) {
    uint32_t code;
    memcpy(&code, (const void *)pc, sizeof code);
    return code;
}

/* Of an instruction of 4 bytes: what is in rd, rs1 and rs2, and the immediate of a store. */
static uint32_t destination(uint32_t code) {
    return (code >> 7) & 31;
}

static uint32_t first_source(uint32_t code) {
    return (code >> 15) & 31;
}

static uint32_t second_source(uint32_t code) {
    return (code >> 20) & 31;
}

static int32_t store_offset(uint32_t code) {
    return ((int32_t)code >> 25) * 32 + (int32_t)destination(code);
}

int machine_follows_call(uintptr_t pc) {
    uint32_t code = load_code(pc - sizeof code);
    uint32_t last = code >> 16;
    return ((code & 0x7f) == 0x6f && destination(code) == RA) ||   /* jal ra */
           ((code & 0x707f) == 0x67 && destination(code) == RA) || /* jalr ra */
           ((last & 0xf07f) == 0x9002 && (last >> 7 & 31) != 0);   /* c.jalr */
}

/* auipc t3; ld t3, (t3); jalr t1, t3; nop: an entry of the PLT, as linkers make it. */
int machine_is_stub(uintptr_t pc) {
    uintptr_t start = pc & ~(uintptr_t)15;
    return (load_code(start) & 0xfff) == 0xe17 && (load_code(start + 4) & 0xfffff) == 0xe3e03 &&
           load_code(start + 8) == 0xe0367;
}

/* sw zero, displacement(sp or s0) */
static int riscv64_decode_store(uint32_t code, struct machine_store *store) {
    uint32_t base = first_source(code);
    if ((code & 0x707f) != 0x2023 || second_source(code) != ZERO || (base != SP && base != S0)) {
        return 0;
    }
    store->base_register = base;
    store->displacement = store_offset(code);
    return 1;
}

/* lui zero, constant, right behind it. */
int machine_find_store(uintptr_t start, uintptr_t end, uint32_t constant,
                       struct machine_store *store) {
    const uint32_t mark = (constant & 0xfffff) << 12 | 0x37;
    for (uintptr_t at = (start + 1) & ~(uintptr_t)1; at + 2 * sizeof mark <= end; at += 2) {
        if (load_code(at + sizeof mark) == mark && riscv64_decode_store(load_code(at), store)) {
            store->start = at;
            store->end = at + 2 * sizeof mark;
            return 1;
        }
    }
    return 0;
}
