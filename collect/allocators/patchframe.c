/* SPDX-License-Identifier: MIT */
/* patchframe.c: see patchframe.h. */
#include "collect/allocators/patchframe.h"

#include <dwarf.h>
#include <stdlib.h>

enum { DWARF_RBP = 6, DWARF_RSP = 7, WORD = 8 };

static void read_rule(struct patchframe *frame, Dwarf_Frame *row) {
    Dwarf_Op *operations;
    size_t count;
    frame->reg = -1;
    if (dwarf_frame_cfa(row, &operations, &count) != 0 || count != 1) {
        return;
    }
    if (operations[0].atom == DW_OP_bregx) {
        frame->reg = (int)operations[0].number;
        frame->offset = (int64_t)operations[0].number2;
    } else if (operations[0].atom >= DW_OP_breg0 && operations[0].atom <= DW_OP_breg31) {
        frame->reg = operations[0].atom - DW_OP_breg0;
        frame->offset = (int64_t)operations[0].number;
    }
}

/* Looks the rule up for the instruction. false: there is none. */
static bool find_rule(struct patchframe *frame, uint64_t address) {
    Dwarf_Frame *row = NULL;
    Dwarf_Addr low;
    Dwarf_Addr high;
    if (address >= frame->low && address < frame->high) {
        return true;
    }
    if (frame->code->cfi == NULL || dwarf_cfi_addrframe(frame->code->cfi, address, &row) != 0) {
        return false;
    }
    read_rule(frame, row);
    frame->low = frame->high = 0;
    if (dwarf_frame_info(row, &low, &high, NULL) >= 0) {
        frame->low = low;
        frame->high = high;
    }
    free(row);
    return true;
}

/* An operand in memory, or an address that is taken: `place` is how far it lies from the CFA. */
static enum patchframe_use use_of(const ZydisDecodedOperand *operand, int64_t place) {
    int64_t size = operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN ? 1 : (int64_t)operand->size / 8;
    if (place >= 0 || place + size > 0) {
        return PATCHFRAME_ARGUMENTS;
    }
    return place + size > -WORD ? PATCHFRAME_RETURN : PATCHFRAME_NOTHING;
}

/* What it takes off the stack, or gives back with it, is the return address or what lies behind. */
static enum patchframe_use implicit_use(const struct patchframe *frame,
                                        const struct patchcode *code) {
    bool is_at_return = frame->reg == DWARF_RSP && frame->offset == WORD;
    if (code->it.mnemonic == ZYDIS_MNEMONIC_RET && code->it.operand_count_visible > 0) {
        return PATCHFRAME_ARGUMENTS;
    }
    return is_at_return && code->it.mnemonic == ZYDIS_MNEMONIC_POP ? PATCHFRAME_RETURN
                                                                   : PATCHFRAME_NOTHING;
}

enum patchframe_use patchframe_use(struct patchframe *frame, const struct patchcode *code,
                                   uint64_t address) {
    enum patchframe_use use;
    if (!find_rule(frame, address) || frame->reg < 0) {
        return PATCHFRAME_UNKNOWN;
    }
    use = implicit_use(frame, code);
    for (unsigned i = 0; use == PATCHFRAME_NOTHING && i < code->it.operand_count_visible; i++) {
        const ZydisDecodedOperand *operand = &code->operands[i];
        int base = operand->type != ZYDIS_OPERAND_TYPE_MEMORY ? -1
                   : operand->mem.base == ZYDIS_REGISTER_RSP  ? DWARF_RSP
                   : operand->mem.base == ZYDIS_REGISTER_RBP  ? DWARF_RBP
                                                              : -1;
        if (base >= 0 && base == frame->reg) {
            use = use_of(operand, operand->mem.disp.value - frame->offset);
        }
    }
    return use;
}
