/* SPDX-License-Identifier: MIT */
/*
 * patchmove.h: the first instructions of a function, whole ones of at least five bytes, and the
 * same for another place, which then jump back behind them. x86-64, decoded by Zydis.
 *
 * Called by patchcheck.c and allocplan.c. Any thread.
 */
#ifndef COLLECT_ALLOCATORS_PATCHMOVE_H
#define COLLECT_ALLOCATORS_PATCHMOVE_H

#include "memtrace/allocators.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <Zydis/Zydis.h>

enum {
    PATCH_JUMP = 5, /* bytes of what takes their place */
    PATCH_INSTRUCTIONS = PATCH_JUMP,
    PATCH_WHY = 160
};

/* One instruction at an address. */
struct patchcode {
    ZydisDecodedInstruction it;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};
/* false: these bytes are no instruction that is known. */
bool patchcode_read(struct patchcode *code, const uint8_t *bytes, size_t left);
/* Where it may go on but behind it: false: nowhere that it says itself. */
bool patchcode_target(const struct patchcode *code, uint64_t address, uint64_t *target);
/* Whether what stands behind it is not run: a jump, a return. */
bool patchcode_ends(const struct patchcode *code);
/* The operand that lies in memory relative to the instruction pointer: where; false: there is none.
 */
bool patchcode_relative(const struct patchcode *code, uint64_t address, uint64_t *place);

enum patchmove_kind {
    PATCHMOVE_AS_IS,
    PATCHMOVE_RELATIVE, /* its displacement is from the instruction pointer */
    PATCHMOVE_JUMP,
    PATCHMOVE_BRANCH, /* a conditional jump */
    PATCHMOVE_CALL,
    PATCHMOVE_CALL_INDIRECT
};

struct patchmove_one {
    uint8_t kind; /* enum patchmove_kind */
    uint8_t length;
    uint8_t at;      /* in what is replaced */
    uint8_t opcode;  /* BRANCH: the condition; CALL_INDIRECT: where its opcode is */
    uint8_t field;   /* where the displacement is in the instruction; 0: there is none */
    uint64_t target; /* of jumps, calls and displacements */
};

struct patchmove {
    uint64_t address; /* where it stands in the process */
    uint32_t length;
    uint8_t bytes[MEMTRACE_PATCH_BYTES];
    struct patchmove_one list[PATCH_INSTRUCTIONS];
    size_t count;
    bool has_call;
};

/* Reads them at `address`, where `bytes` lie, `left` of the function; endbr64 is not among them.
 * 0, or -1: they cannot be moved, and why. */
int patchmove_read(struct patchmove *move, const uint8_t *bytes, size_t left, uint64_t address,
                   char why[PATCH_WHY]);

enum { PATCHMOVE_ROOM = 128 };
/* Writes them for the place `at`. Returns how many bytes, or 0: something is too far from there. */
size_t patchmove_write(const struct patchmove *move, uint64_t at, uint8_t to[PATCHMOVE_ROOM]);

#endif
