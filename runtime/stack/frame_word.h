/* SPDX-License-Identifier: MIT */
/*
 * frame_word.h: the shadow slot that a compiler pass puts into the frame itself.
 *
 * A function built with MODE pass has one 32-bit stack variable, its frame word. On every path to a
 * call that may allocate it stores FRAME_WORD_FRESH there: one instruction, nothing at its end. A
 * walk that steps over the frame writes the context of the frame's caller into the word, and the
 * next walk that meets it stops there. docs/instrumentation.md tells why this is sound.
 *
 * Shared by the runtime and the compiler plugins: C and C++, no other header of the runtime.
 *
 * What a pass guarantees:
 *  - Every call of the function that may reach an allocator or unknown code, and does not leave the
 *    frame first (a tail call), comes after such a store on every path.
 *  - Nothing else writes the word while the function runs, and its distance from the CFA is fixed.
 *  - The store has the form below, and the function has unwind information.
 */
#ifndef RUNTIME_STACK_FRAME_WORD_H
#define RUNTIME_STACK_FRAME_WORD_H

#include <stdint.h>

/* Not a context id (they have 24 bits), and hardly anything else's constant. */
#define FRAME_WORD_FRESH 0x5a17c0deu
/* Where a constant in memory takes registers: the word is zero, and a second instruction has this.
 */
#define FRAME_WORD_MARK 0x5a17u

/* The store can be found in the code of a function, and with it the word. On x86-64 it is
 * `mov dword [rsp|rbp + displacement], FRAME_WORD_FRESH` (Intel SDM volume 2, MOV: C7 /0 id), on
 * AArch64 `str wzr, [sp|x29, displacement]`, right before `movz wzr, FRAME_WORD_MARK`; or any store
 * of zero, where `prfm plil3keep, [sp|x29, displacement]` is in the function, too. On RISC-V it is
 * `sw zero, displacement(sp|s0)`, right before `lui zero, FRAME_WORD_MARK`. */
struct cfi_row;

/* Where the frame word of the function that `row` (cfi.h) is about lies: bytes below the CFA; 0: it
 * has none, or not at one place. Reads the function's code. */
uint32_t frame_word_below_cfa(const uint8_t *eh_frame_header, const struct cfi_row *row);

#endif
