/* SPDX-License-Identifier: MIT */
/* pass.h: the pass itself, as LLVM's pass manager runs it; plugin.cpp says when. */
#ifndef INSTRUMENT_CLANG_PASS_H
#define INSTRUMENT_CLANG_PASS_H

#include <llvm/IR/PassManager.h>

class frame_word_pass : public llvm::PassInfoMixin<frame_word_pass> {
  public:
    llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);

    /* Also where optimisation is off. */
    static bool isRequired() {
        return true;
    }
};

#endif
