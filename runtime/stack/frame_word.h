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
 */
#ifndef RUNTIME_STACK_FRAME_WORD_H
#define RUNTIME_STACK_FRAME_WORD_H

#include <stdint.h>

/* Not a context id (they have 24 bits), and hardly anything else's constant. */
#define FRAME_WORD_FRESH 0x5a17c0deu

/* The form of the store, which the runtime finds in the machine code: mov dword [rsp|rbp + disp],
 * imm32 (Intel SDM volume 2, MOV: C7 /0 id). */

#endif
