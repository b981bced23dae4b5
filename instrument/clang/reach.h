/* SPDX-License-Identifier: MIT */
/*
 * reach.h: which calls may reach an allocator or code that the compiler does not know. The others
 * need no fresh frame word before them.
 */
#ifndef INSTRUMENT_CLANG_REACH_H
#define INSTRUMENT_CLANG_REACH_H

#include "instrument/clang/machine.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Module.h>

#include <string>

class call_reach {
  public:
    using library_of = llvm::function_ref<const llvm::TargetLibraryInfo &(llvm::Function &)>;

    /* Judges every function of the unit; `library` tells what the target's library functions look
     * like. */
    call_reach(const machine &target, llvm::Module &module, library_of library);

    /* Whether executing `instruction` may reach an allocator below this frame. */
    bool may_allocate(const llvm::Instruction &instruction) const;

    /* Whether the user promised that `function` never allocates. */
    bool is_promised(const llvm::Function &function) const {
        return promised.count(&function) != 0;
    }

    /* Whether it is inline assembly that leaves for other code. */
    bool is_assembly_call(const llvm::Instruction &instruction) const;

    /* What makes it so, for the report: "calls f" */
    static std::string reason(const llvm::Instruction &instruction);

  private:
    enum class verdict { never, maybe, as_its_callee };

    verdict judge(const llvm::Instruction &instruction) const;
    verdict judge_callee(const llvm::Function &callee) const;
    void read_annotations(const llvm::Module &module);
    void find_library(llvm::Module &module, library_of library);
    void propagate(llvm::Module &module);

    const machine &target;
    llvm::DenseSet<const llvm::Function *> promised; /* by attribute or option */
    llvm::DenseSet<const llvm::Function *> library_never;
    llvm::DenseSet<const llvm::Function *> reaching; /* defined here, and may allocate */
};

#endif
