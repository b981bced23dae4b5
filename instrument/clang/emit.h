/* SPDX-License-Identifier: MIT */
/*
 * emit.h: the frame word and its stores in LLVM's terms (runtime/stack/frame_word.h says what the
 * machine code must look like).
 */
#ifndef INSTRUMENT_CLANG_EMIT_H
#define INSTRUMENT_CLANG_EMIT_H

#include "instrument/clang/machine.h"

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

/* Gives `function` a frame word and makes it fresh before each of `places`. */
void emit_frame_word(const machine &target, llvm::Function &function,
                     llvm::ArrayRef<llvm::Instruction *> places);

/* Takes frame words out that an earlier run of the pass put in: before linking, with LTO. */
void emit_strip(const machine &target, llvm::Function &function);

/* Keeps functions that this pass has not judged from being merged with it: their calls may not be
 * covered, but the inlined store would look as if they were. */
void emit_judged(llvm::Function &function);

/* Whether `call` leaves the frame for certain. Makes it so if it may become a jump and is free to:
 * then it needs no store. */
bool emit_leaves_frame(const machine &target, llvm::CallBase &call);

#endif
