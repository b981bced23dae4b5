/* SPDX-License-Identifier: MIT */
/* machine.cpp: which machine a unit is compiled for. See machine.h. */
#include "instrument/clang/machine.h"

#include <llvm/IR/DataLayout.h>
#include <llvm/IR/IRBuilder.h>
#if __has_include(<llvm/TargetParser/Triple.h>)
#include <llvm/TargetParser/Triple.h>
#else
#include <llvm/ADT/Triple.h>
#endif

using namespace llvm;

const machine *machine_of(const Module &module) {
    const Triple target(module.getTargetTriple());
    if (!target.isOSBinFormatELF() || module.getDataLayout().getPointerSize() != sizeof(uint64_t)) {
        return nullptr;
    }
    switch (target.getArch()) {
    case Triple::x86_64:
        return &machine_x86_64();
    case Triple::aarch64:
        return &machine_aarch64();
    default:
        return nullptr;
    }
}

AllocaInst *machine::add_word(Function &function) const {
    BasicBlock &entry = function.getEntryBlock();
    IRBuilder<> builder(&entry, entry.begin());
    return builder.CreateAlloca(builder.getInt32Ty(), nullptr, "memtrace.word");
}

std::string machine_name(const Module &module) {
    return Triple(module.getTargetTriple()).str();
}
