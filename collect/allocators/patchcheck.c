/* SPDX-License-Identifier: MIT */
/* patchcheck.c: see patchcheck.h. */
#include "collect/allocators/patchcheck.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEVELS = 4,     /* so far jumps to other functions are followed */
    FUNCTIONS = 64, /* so many of them */
    TABLE_ENTRIES = 1 << 16,
    SHORT_JUMP = 0x80 + 15 /* no short jump reaches further, its own bytes included */
};

/* What is looked at: the function first, then what it leaves by jumps to. */
struct part {
    struct codefile_range range;
    int level;
    bool is_cold; /* of the function itself */
};

struct check {
    const struct patchsubject *subject;
    struct codefile *code;
    uint64_t address; /* what is replaced begins here, behind an endbr64 */
    struct patchmove move;
    struct part parts[FUNCTIONS];
    size_t part_count;
    char *why;
};

static int patchcheck_refuse(const struct check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int patchcheck_refuse(const struct check *check, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check->why, PATCH_WHY, format, arguments);
    va_end(arguments);
    return -1;
}

/* The name of what lies at an address, for people. */
static const char *patchcheck_name_at(const struct check *check, uint64_t address) {
    size_t place = codefile_symbol_from(check->code, address + 1);
    return place > 0 ? check->code->symbols[place - 1].name : "something";
}

/* ---- Its frame ---- */

/* Whether an instruction has to do with what lies on the stack above its function's own frame: the
 * return address, and arguments behind it. By unwind tables. One for each walk through a function.
 */
struct patchframe {
    const struct codefile *code;
    uint64_t low, high; /* for these instructions the CFA is register + offset */
    int reg;            /* DWARF's number; -1: another rule */
    int64_t offset;
};

enum patchframe_use {
    PATCHFRAME_NOTHING,
    PATCHFRAME_ARGUMENTS,
    PATCHFRAME_RETURN,
    PATCHFRAME_UNKNOWN
};

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

static enum patchframe_use patchframe_use(struct patchframe *frame, const struct patchcode *code,
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

/* ---- Extents ---- */

/* Where the function at the address ends. 0: nobody knows. */
static uint64_t patchcheck_end_of(const struct check *check, uint64_t address, uint64_t size) {
    const struct codefile_range *frame = codefile_frame(check->code, address);
    size_t next;
    if (frame != NULL) {
        return frame->high;
    }
    if (size != 0) {
        return address + size;
    }
    next = codefile_symbol_from(check->code, address + 1);
    return next < check->code->symbol_count ? check->code->symbols[next].address : 0;
}

/* Nothing else may begin in the bytes that are replaced, but for the endbr64 before them. */
static int check_symbols(const struct check *check) {
    uint64_t low = check->subject->function + 1;
    uint64_t high = check->address + check->move.length;
    size_t symbol = codefile_symbol_from(check->code, low);
    size_t frame = codefile_frame_from(check->code, low - 1);
    for (; symbol < check->code->symbol_count && check->code->symbols[symbol].address < high;
         symbol++) {
        if (check->code->symbols[symbol].address > check->address) {
            return patchcheck_refuse(check, "%s begins within its first bytes",
                                     check->code->symbols[symbol].name);
        }
    }
    for (; frame < check->code->frame_count && check->code->frames[frame].low < high; frame++) {
        if (check->code->frames[frame].low < low - 1) {
            return patchcheck_refuse(check,
                                     "it begins within another function, which may run into it");
        }
        if (check->code->frames[frame].low > low - 1) {
            return patchcheck_refuse(check, "another function begins within its first bytes");
        }
    }
    return 0;
}

/* ---- Who leads into the replaced bytes ---- */

static bool is_replaced(const struct check *check, uint64_t target) {
    return target > check->address && target < check->address + check->move.length;
}

/* Calls and jumps over 32 bits, from anywhere. */
static int check_far(const struct check *check) {
    for (uint64_t at = check->address + 1; at < check->address + check->move.length; at++) {
        if (codefile_is_target(check->code, at)) {
            return patchcheck_refuse(check, "something jumps into its first bytes");
        }
    }
    return 0;
}

static int check_neighbour(const struct check *check, struct codefile_range range) {
    struct patchcode code;
    uint64_t target;
    size_t left;
    for (uint64_t at = range.low; at < range.high; at += code.it.length) {
        const uint8_t *bytes = codefile_text(check->code, at, &left);
        if (bytes == NULL || !patchcode_read(&code, bytes, left)) {
            return 0; /* no instructions any more */
        }
        if (patchcode_target(&code, at, &target) && is_replaced(check, target)) {
            return patchcheck_refuse(check, "%s jumps into its first bytes",
                                     patchcheck_name_at(check, range.low));
        }
    }
    return 0;
}

/* Short jumps, of other functions nearby. */
static int check_near(const struct check *check) {
    uint64_t low = check->address > SHORT_JUMP ? check->address - SHORT_JUMP : 0;
    uint64_t high = check->address + check->move.length + SHORT_JUMP;
    const struct codefile *code = check->code;
    int status = 0;
    for (size_t i = codefile_frame_from(code, low);
         status == 0 && i < code->frame_count && code->frames[i].low < high; i++) {
        status = check_neighbour(check, code->frames[i]);
    }
    for (size_t i = codefile_symbol_from(code, low);
         status == 0 && i < code->symbol_count && code->symbols[i].address < high; i++) {
        const struct codefile_symbol *symbol = &code->symbols[i];
        if (codefile_frame(code, symbol->address) == NULL) {
            status = check_neighbour(
                check, (struct codefile_range){symbol->address, symbol->address + symbol->size});
        }
    }
    return status;
}

/* ---- Tables of jumps ---- */

struct tables {
    bool has_jump;  /* one through a register or memory that is no constant address */
    bool has_known; /* some table that leads into the function */
};

/* Entries of a table at `place`: distances from it over 32 bits, or addresses. */
static int check_table(const struct check *check, const struct part *part, uint64_t place,
                       bool is_relative, struct tables *tables) {
    size_t size = is_relative ? sizeof(int32_t) : sizeof(uint64_t);
    for (size_t i = 0; i < TABLE_ENTRIES; i++) {
        size_t left;
        const uint8_t *bytes = codefile_bytes(check->code, place + i * size, &left);
        uint64_t target = 0;
        int32_t distance;
        if (bytes == NULL || left < size) {
            return 0;
        }
        memcpy(&distance, bytes, sizeof distance);
        memcpy(&target, bytes, size);
        target = is_relative ? place + (uint64_t)(int64_t)distance : target;
        if (codefile_text(check->code, target, &left) == NULL) {
            return 0;
        }
        tables->has_known |= target >= part->range.low && target < part->range.high;
        if (tables->has_known && (is_replaced(check, target) || target == check->address ||
                                  target == check->subject->function)) {
            return patchcheck_refuse(check, "a table of jumps leads to its first bytes");
        }
    }
    return 0;
}

static int check_tables(const struct check *check, const struct part *part, struct tables *tables) {
    struct patchcode code;
    size_t left;
    int status = 0;
    for (uint64_t at = part->range.low; status == 0 && at < part->range.high;
         at += code.it.length) {
        const uint8_t *bytes = codefile_text(check->code, at, &left);
        uint64_t place;
        if (bytes == NULL || !patchcode_read(&code, bytes, left)) {
            break;
        }
        if (code.it.mnemonic == ZYDIS_MNEMONIC_LEA && patchcode_relative(&code, at, &place)) {
            status = check_table(check, part, place, true, tables);
        } else if (code.operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
                   code.operands[0].mem.index != ZYDIS_REGISTER_NONE &&
                   code.it.meta.category == ZYDIS_CATEGORY_UNCOND_BR) {
            place = (uint64_t)code.operands[0].mem.disp.value;
            status = check_table(check, part, place, false, tables);
        }
    }
    return status;
}

/* ---- The function itself, and where it leaves to ---- */

static int check_stack(const struct check *check, struct patchframe *frame,
                       const struct patchcode *code, uint64_t at) {
    switch (patchframe_use(frame, code, at)) {
    case PATCHFRAME_ARGUMENTS:
        return patchcheck_refuse(check, "it may have arguments on the stack (at %s+%#" PRIx64 ")",
                                 patchcheck_name_at(check, at), at - check->subject->function);
    case PATCHFRAME_RETURN:
        return patchcheck_refuse(check, "it looks at its own return address");
    case PATCHFRAME_UNKNOWN:
        return patchcheck_refuse(check,
                                 "no unwind table tells whether it has arguments on the stack");
    default:
        return 0;
    }
}

/* A target that nobody can look at. See patchcheck.h. */
static int check_unknown(const struct check *check, const char *what) {
    return check->subject->nests && !check->subject->is_claimed
               ? patchcheck_refuse(
                     check, "it ends in a jump %s, which may have arguments on the stack", what)
               : 0;
}

/* Where the part's jump out of it leads is looked at, too, since the stack is still the function's.
 */
static int patchcheck_follow(struct check *check, const struct part *part, uint64_t target) {
    const struct codefile_range *frame = codefile_frame(check->code, target);
    bool is_cold =
        part->level == 0 && frame != NULL &&
        (frame->low != target || strstr(patchcheck_name_at(check, frame->low), ".cold") != NULL);
    if (!check->subject->nests && !is_cold) {
        return 0;
    }
    if (codefile_is_plt(check->code, target)) {
        return check_unknown(check, "into another library");
    }
    for (size_t i = 0; i < check->part_count; i++) {
        if (target >= check->parts[i].range.low && target < check->parts[i].range.high) {
            return 0;
        }
    }
    if (frame == NULL) {
        return check_unknown(check, "to what no unwind table knows");
    }
    if (part->level == LEVELS || check->part_count == FUNCTIONS) {
        return check_unknown(check, "through many other functions");
    }
    check->parts[check->part_count++] =
        (struct part){.range = *frame, .level = part->level + 1, .is_cold = is_cold};
    return 0;
}

/* A jump or call of a part to a known place. */
static int patchcheck_target(struct check *check, const struct part *part,
                             const struct patchcode *code, uint64_t target) {
    bool is_own = part->level == 0 || part->is_cold;
    bool is_call = code->it.meta.category == ZYDIS_CATEGORY_CALL;
    if (is_own && !is_call && (target == check->address || target == check->subject->function)) {
        return patchcheck_refuse(check, "it loops to its own start");
    }
    if (is_replaced(check, target)) {
        return patchcheck_refuse(check, "it jumps into its own first bytes");
    }
    if (is_call || (target >= part->range.low && target < part->range.high)) {
        return 0;
    }
    return patchcheck_follow(check, part, target);
}

static int check_instruction(struct check *check, const struct part *part,
                             const struct patchcode *code, uint64_t at, struct tables *tables) {
    uint64_t target;
    if (patchcode_target(code, at, &target)) {
        return patchcheck_target(check, part, code, target);
    }
    if (code->it.meta.category != ZYDIS_CATEGORY_UNCOND_BR) {
        return 0;
    }
    if (patchcode_relative(code, at, &target)) {
        return check_unknown(check, "into another library");
    }
    tables->has_jump = true;
    return 0;
}

static int check_part(struct check *check, size_t number) {
    const struct part part = check->parts[number];
    struct patchframe frame = {.code = check->code};
    struct tables tables = {0};
    struct patchcode code;
    size_t left;
    for (uint64_t at = part.range.low; at < part.range.high; at += code.it.length) {
        const uint8_t *bytes = codefile_text(check->code, at, &left);
        if (bytes == NULL || !patchcode_read(&code, bytes, left)) {
            return patchcheck_refuse(check, "an instruction in it is not known (at %#" PRIx64 ")",
                                     at);
        }
        if (check_instruction(check, &part, &code, at, &tables) != 0 ||
            (check->subject->nests && check_stack(check, &frame, &code, at) != 0)) {
            return -1;
        }
    }
    if (tables.has_jump) {
        if (check_tables(check, &part, &tables) != 0) {
            return -1;
        }
        return tables.has_known ? 0 : check_unknown(check, "through a register");
    }
    return 0;
}

static int patchcheck_read_start(struct check *check, uint64_t end) {
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t left;
    const uint8_t *bytes = codefile_text(check->code, check->address, &left);
    if (bytes == NULL || end <= check->address) {
        return patchcheck_refuse(check, "its code or its end cannot be found");
    }
    if (left >= sizeof endbr64 && memcmp(bytes, endbr64, sizeof endbr64) == 0) {
        check->address += sizeof endbr64;
        bytes += sizeof endbr64;
        left -= sizeof endbr64;
    }
    left = end > check->address && end - check->address < left ? end - check->address
           : end <= check->address                             ? 0
                                                               : left;
    return patchmove_read(&check->move, bytes, left, check->address, check->why);
}

int patchcheck_function(const struct patchsubject *subject, struct patchmove *move,
                        char why[PATCH_WHY]) {
    struct check check = {
        .subject = subject, .code = subject->code, .address = subject->function, .why = why};
    uint64_t end = patchcheck_end_of(&check, subject->function, subject->size);
    int status =
        subject->function == subject->code->entry
            ? patchcheck_refuse(&check, "it is where the program begins, and is not called")
            : patchcheck_read_start(&check, end);
    if (status != 0 || check_symbols(&check) != 0) {
        return -1;
    }
    check.parts[check.part_count++] = (struct part){.range = {subject->function, end}};
    for (size_t i = 0; status == 0 && i < check.part_count; i++) {
        status = check_part(&check, i);
    }
    if (status != 0 || check_far(&check) != 0 || check_near(&check) != 0) {
        return -1;
    }
    return patchmove_read(move, check.move.bytes, check.move.length, check.address + subject->bias,
                          why);
}
