/* SPDX-License-Identifier: MIT */
/* patchmove.c: see patchmove.h. */
#include "collect/allocators/patchmove.h"

#include <stdio.h>
#include <string.h>

/* ---- One instruction ---- */

bool patchcode_read(struct patchcode *code, const uint8_t *bytes, size_t left) {
    ZydisDecoder decoder;
    return ZYAN_SUCCESS(
               ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, left, &code->it, code->operands));
}

bool patchcode_target(const struct patchcode *code, uint64_t address, uint64_t *target) {
    for (unsigned i = 0; i < code->it.operand_count; i++) {
        const ZydisDecodedOperand *operand = &code->operands[i];
        if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand->imm.is_relative) {
            *target = address + code->it.length + operand->imm.value.u;
            return true;
        }
    }
    return false;
}

bool patchcode_ends(const struct patchcode *code) {
    return code->it.meta.category == ZYDIS_CATEGORY_RET ||
           code->it.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
           code->it.mnemonic == ZYDIS_MNEMONIC_UD2 || code->it.mnemonic == ZYDIS_MNEMONIC_HLT;
}

bool patchcode_relative(const struct patchcode *code, uint64_t address, uint64_t *place) {
    for (unsigned i = 0; i < code->it.operand_count; i++) {
        const ZydisDecodedOperand *operand = &code->operands[i];
        if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
            (operand->mem.base == ZYDIS_REGISTER_RIP || operand->mem.base == ZYDIS_REGISTER_EIP)) {
            *place = address + code->it.length + (uint64_t)operand->mem.disp.value;
            return true;
        }
    }
    return false;
}

/* ---- What can be moved ---- */

static const char *patchcode_name(const struct patchcode *code) {
    const char *name = ZydisMnemonicGetString(code->it.mnemonic);
    return name != NULL ? name : "?";
}

static bool uses_stack_pointer(const struct patchcode *code) {
    for (unsigned i = 0; i < code->it.operand_count_visible; i++) {
        const ZydisDecodedOperand *operand = &code->operands[i];
        if ((operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
             operand->mem.base == ZYDIS_REGISTER_RSP) ||
            (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
             operand->reg.value == ZYDIS_REGISTER_RSP)) {
            return true;
        }
    }
    return false;
}

/* A jump or a call by its target's distance. -1: it is another one. */
static int classify_direct(const struct patchcode *code, struct patchmove_one *one) {
    uint8_t opcode = code->it.opcode;
    if (code->it.operand_width == 16) {
        return -1;
    }
    if (code->it.mnemonic == ZYDIS_MNEMONIC_CALL) {
        one->kind = PATCHMOVE_CALL;
    } else if (code->it.mnemonic == ZYDIS_MNEMONIC_JMP) {
        one->kind = PATCHMOVE_JUMP;
    } else if ((code->it.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (opcode & 0xf0) == 0x70) ||
               (code->it.opcode_map == ZYDIS_OPCODE_MAP_0F && (opcode & 0xf0) == 0x80)) {
        one->kind = PATCHMOVE_BRANCH;
        one->opcode = opcode & 0x0f;
    } else {
        return -1; /* loop, jrcxz, xbegin */
    }
    return 0;
}

/* call *%rax, call *8(%rip). -1: it is another one: far, or its place on the stack would be
 * another.
 */
static int classify_call(const struct patchcode *code, const uint8_t *bytes,
                         struct patchmove_one *one) {
    uint8_t modrm = code->it.raw.modrm.offset;
    if (uses_stack_pointer(code) || modrm == 0 || bytes[modrm - 1] != 0xff ||
        code->it.raw.modrm.reg != 2 || code->it.operand_width == 16) {
        return -1;
    }
    one->kind = PATCHMOVE_CALL_INDIRECT;
    one->opcode = modrm;
    return 0;
}

/* 0, or -1: it cannot be moved. */
static int patchcode_classify(const struct patchcode *code, const uint8_t *bytes, uint64_t address,
                              struct patchmove_one *one) {
    uint64_t target;
    one->length = code->it.length;
    if (code->it.meta.category == ZYDIS_CATEGORY_INTERRUPT ||
        code->it.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ||
        code->it.mnemonic == ZYDIS_MNEMONIC_UD2 || code->it.mnemonic == ZYDIS_MNEMONIC_HLT) {
        return -1;
    }
    if (patchcode_target(code, address, &target)) {
        one->target = target;
        return classify_direct(code, one);
    }
    if (code->it.meta.category == ZYDIS_CATEGORY_CALL && classify_call(code, bytes, one) != 0) {
        return -1;
    }
    if (patchcode_relative(code, address, &target)) {
        one->kind = one->kind == PATCHMOVE_AS_IS ? PATCHMOVE_RELATIVE : one->kind;
        one->field = code->it.raw.disp.offset;
        one->target = target;
        return code->it.raw.disp.size == 32 && code->it.address_width == 64 ? 0 : -1;
    }
    return 0;
}

static int patchmove_refuse(char why[PATCH_WHY], const char *format, const char *name) {
    snprintf(why, PATCH_WHY, format, name);
    return -1;
}

static int patchmove_add(struct patchmove *move, const struct patchcode *code, const uint8_t *bytes,
                         char why[PATCH_WHY]) {
    struct patchmove_one *one = &move->list[move->count];
    if (move->has_call) {
        return patchmove_refuse(why, "it calls another function within its first five bytes", "");
    }
    *one = (struct patchmove_one){.at = (uint8_t)move->length};
    if (patchcode_classify(code, bytes, move->address + move->length, one) != 0) {
        return patchmove_refuse(why, "%s among its first instructions cannot be moved",
                                patchcode_name(code));
    }
    move->has_call = one->kind == PATCHMOVE_CALL || one->kind == PATCHMOVE_CALL_INDIRECT;
    move->length += one->length;
    move->count++;
    return 0;
}

/* Where in the replaced bytes it leads, it would meet halves of what is put there; to their first,
 * it would count as another call. */
static int check_own_targets(const struct patchmove *move, char why[PATCH_WHY]) {
    for (size_t i = 0; i < move->count; i++) {
        const struct patchmove_one *one = &move->list[i];
        if ((one->kind == PATCHMOVE_JUMP || one->kind == PATCHMOVE_BRANCH) &&
            one->target - move->address < move->length) {
            return patchmove_refuse(why, "it jumps into its own first bytes", "");
        }
    }
    return 0;
}

int patchmove_read(struct patchmove *move, const uint8_t *bytes, size_t left, uint64_t address,
                   char why[PATCH_WHY]) {
    struct patchcode code;
    *move = (struct patchmove){.address = address};
    while (move->length < PATCH_JUMP) {
        const uint8_t *at = bytes + move->length;
        if (move->length >= left) {
            return patchmove_refuse(why, "it is too short: less than five bytes", "");
        }
        if (!patchcode_read(&code, at, left - move->length)) {
            return patchmove_refuse(why, "one of its first instructions is not known", "");
        }
        if (patchmove_add(move, &code, at, why) != 0) {
            return -1;
        }
        if (patchcode_ends(&code) && move->length < PATCH_JUMP) {
            return patchmove_refuse(why, "it is too short: %s within its first five bytes",
                                    patchcode_name(&code));
        }
    }
    memcpy(move->bytes, bytes, move->length);
    return check_own_targets(move, why);
}

/* ---- Writing ---- */

struct writer {
    uint64_t place; /* of the first byte */
    uint8_t *to;
    size_t size;
    bool is_too_far;
};

static void patch_put(struct writer *writer, const void *bytes, size_t size) {
    memcpy(writer->to + writer->size, bytes, size);
    writer->size += size;
}

static void put_byte(struct writer *writer, uint8_t byte) {
    writer->to[writer->size++] = byte;
}

/* The distance from behind the field (and `more` bytes) to the target, at `at`. */
static void set_distance(struct writer *writer, size_t at, size_t more, uint64_t target) {
    int64_t distance = (int64_t)(target - (writer->place + at + sizeof(int32_t) + more));
    int32_t field = (int32_t)distance;
    writer->is_too_far |= field != distance;
    memcpy(writer->to + at, &field, sizeof field);
}

static void put_distance(struct writer *writer, uint64_t target) {
    writer->size += sizeof(int32_t);
    set_distance(writer, writer->size - sizeof(int32_t), 0, target);
}

static void put_jump(struct writer *writer, uint64_t target) {
    put_byte(writer, 0xe9);
    put_distance(writer, target);
}

/* push 0(%rip), over what stands between: the return address lies behind the jump of a call, which
 * is `jump` bytes. So a walk of the stack finds the caller where it always was. */
static void put_push(struct writer *writer, size_t jump) {
    patch_put(writer, (const uint8_t[]){0xff, 0x35}, 2);
    put_distance(writer, writer->place + writer->size + sizeof(int32_t) + jump);
}

static void patch_put_bytes(struct writer *writer, const struct patchmove *move,
                            const struct patchmove_one *one) {
    size_t at = writer->size;
    patch_put(writer, move->bytes + one->at, one->length);
    if (one->field != 0) {
        size_t field = at + one->field;
        set_distance(writer, field, one->length - one->field - sizeof(int32_t), one->target);
    }
}

/* In the ModRM byte, what the instruction does: 2 calls, 4 jumps. */
enum { CALL_TO_JUMP = 6 << 3 };

static void patch_put_call(struct writer *writer, const struct patchmove *move,
                           const struct patchmove_one *one) {
    uint64_t back = move->address + move->length;
    size_t at;
    put_push(writer, one->kind == PATCHMOVE_CALL ? PATCH_JUMP : one->length);
    at = writer->size;
    if (one->kind == PATCHMOVE_CALL) {
        put_jump(writer, one->target);
    } else {
        patch_put_bytes(writer, move, one);
        writer->to[at + one->opcode] ^= CALL_TO_JUMP;
    }
    patch_put(writer, &back, sizeof back);
}

static void patch_put_one(struct writer *writer, const struct patchmove *move,
                          const struct patchmove_one *one) {
    switch (one->kind) {
    case PATCHMOVE_JUMP:
        put_jump(writer, one->target);
        break;
    case PATCHMOVE_BRANCH:
        patch_put(writer, (const uint8_t[]){0x0f, 0x80 | one->opcode}, 2);
        put_distance(writer, one->target);
        break;
    case PATCHMOVE_CALL:
    case PATCHMOVE_CALL_INDIRECT:
        patch_put_call(writer, move, one);
        break;
    default:
        patch_put_bytes(writer, move, one);
    }
}

size_t patchmove_write(const struct patchmove *move, uint64_t at, uint8_t to[PATCHMOVE_ROOM]) {
    struct writer writer = {.place = at, .to = to};
    for (size_t i = 0; i < move->count; i++) {
        patch_put_one(&writer, move, &move->list[i]);
    }
    if (!move->has_call) {
        put_jump(&writer, move->address + move->length);
    }
    return writer.is_too_far ? 0 : writer.size;
}
