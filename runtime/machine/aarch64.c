/* SPDX-License-Identifier: MIT */
/* aarch64.c: reading AArch64's code (Arm ARM, C4.1 "A64 instruction set encoding"). See machine.h.
 */
#include "runtime/machine/machine.h"

#include <string.h>

int machine_follows_call(uintptr_t pc) {
    uint32_t code;
    memcpy(&code, (const void *)(pc - sizeof code), sizeof code);
    return (code & 0xfc000000) == 0x94000000 || /* bl */
           (code & 0xfefff800) == 0xd63f0800 || /* blraa, blrab and their like */
           (code & 0xfffffc1f) == 0xd63f0000;   /* blr */
}

int machine_read_way_back(uintptr_t pc, uintptr_t end, struct machine_way_back *way) {
    (void)pc;
    (void)end;
    (void)way;
    return 0;
}

uint64_t machine_ask_valgrind(const uint64_t request[6]) {
    (void)request;
    return 0;
}

/* STR Wt, [Xn, #imm12 * 4] or STUR Wt, [Xn, #imm9] of the zero register, by sp or x29. */
static int decode_store(uint32_t code, struct machine_store *store) {
    enum { ZERO = 31 };
    uint32_t base = (code >> 5) & 31;
    if ((code & 31) != ZERO || (base != MACHINE_DWARF_SP && base != MACHINE_DWARF_FP)) {
        return 0;
    }
    if ((code & 0xffc00000) == 0xb9000000) {
        store->displacement = (int32_t)((code >> 10) & 0xfff) * 4;
    } else if ((code & 0xffe00c00) == 0xb8000000) {
        uint32_t bits = (code >> 12) & 0x1ff;
        store->displacement = bits < 0x100 ? (int32_t)bits : (int32_t)bits - 0x200;
    } else {
        return 0;
    }
    store->base_register = base;
    return 1;
}

/* MOVZ WZR, #constant, right behind it. */
int machine_find_store(uintptr_t start, uintptr_t end, uint32_t constant,
                       struct machine_store *store) {
    const uint32_t mark = 0x5280001f | (constant & 0xffff) << 5;
    const uint32_t *code = (const uint32_t *)((start + 3) & ~(uintptr_t)3);
    for (; (uintptr_t)(code + 2) <= end; code++) {
        if (code[1] == mark && decode_store(code[0], store)) {
            store->start = (uintptr_t)code;
            store->end = (uintptr_t)(code + 2);
            return 1;
        }
    }
    return 0;
}
