/* SPDX-License-Identifier: MIT */
/*
 * named.h: functions that allocate and are named by the user report by themselves
 * (memtrace/named.h). A pass before all others: what is put in is part of the function's body,
 * wherever that is inlined later.
 */
#ifndef INSTRUMENT_CLANG_NAMED_H
#define INSTRUMENT_CLANG_NAMED_H

#include <llvm/IR/PassManager.h>

class named_pass : public llvm::PassInfoMixin<named_pass> {
  public:
    llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);

    /* Also where optimisation is off. */
    static bool isRequired() {
        return true;
    }
};

#endif
