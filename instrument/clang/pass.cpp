/* SPDX-License-Identifier: MIT */
/*
 * pass.cpp: for each function of the unit: is there a reason to leave it out, which calls need a
 * fresh frame word, where is it stored?
 */
#include "instrument/clang/pass.h"

#include "instrument/clang/emit.h"
#include "instrument/clang/machine.h"
#include "instrument/clang/options.h"
#include "instrument/clang/placement.h"
#include "instrument/clang/reach.h"
#include "instrument/pass_report.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include <cerrno>
#include <cstring>

using namespace llvm;

namespace {

constexpr uint64_t stack_alignment = 16;

/* A hook that runs before any store could: what it calls would find an old word. */
bool has_entry_hook(const Function &function) {
    for (const char *hook :
         {"instrument-function-entry", "instrument-function-entry-inlined", "fentry-call",
          "patchable-function-entry", "function-instrument", "xray-instruction-threshold"}) {
        if (function.hasFnAttribute(hook)) {
            return true;
        }
    }
    return false;
}

/* Variables lie at a changing distance from the CFA then. */
bool is_realigned(Function &function) {
    return function.hasFnAttribute("stackrealign") ||
           any_of(instructions(function), [](const Instruction &instruction) {
               const auto *variable = dyn_cast<AllocaInst>(&instruction);
               return variable != nullptr && variable->getAlign().value() > stack_alignment;
           });
}

/* Assembly that calls writes its return address below the stack pointer, where the compiler, which
 * does not know, may have put the word. */
bool has_assembly_call(const call_reach &reach, Function &function) {
    return any_of(instructions(function), [&](const Instruction &instruction) {
        return reach.is_assembly_call(instruction);
    });
}

/* Whether a coroutine is still one function: its frame is not where its variables will be. */
bool is_unsplit_coroutine(const Function &function) {
#if LLVM_VERSION_MAJOR >= 15
    return function.isPresplitCoroutine();
#else
    return function.hasFnAttribute("coroutine.presplit");
#endif
}

class unit_pass {
  public:
    unit_pass(const machine &its_machine, Module &unit, FunctionAnalysisManager &manager)
        : target(its_machine), module(unit), analyses(manager),
          reach(its_machine, unit, [&](Function &function) -> const TargetLibraryInfo & {
              return manager.getResult<TargetLibraryAnalysis>(function);
          }) {
    }

    void run() {
        for (Function &function : module) {
            if (!function.isDeclaration()) {
                handle(function);
            }
        }
        if (!report.write_out()) {
            module.getContext().emitError("memtrace: cannot write the pass report " +
                                          std::string(pass_report::path()) + ": " +
                                          strerror(errno));
        }
    }

  private:
    const char *obstacle(Function &function) const;
    void handle(Function &function);
    void describe(const Function &function, size_t stores, size_t calls, const std::string &reason);
    void instrument(Function &function, const SmallVectorImpl<Instruction *> &calls);

    const machine &target;
    Module &module;
    FunctionAnalysisManager &analyses;
    call_reach reach;
    pass_report report;
};

/* Why no word is put into `function`, whatever it calls; nullptr: nothing speaks against it. */
const char *unit_pass::obstacle(Function &function) const {
    if (function.hasFnAttribute(Attribute::Naked)) {
        return "naked";
    }
    if (options_excluded(function)) {
        return "excluded by option";
    }
    if (reach.is_promised(function)) {
        return "memtrace_no_alloc"; /* its callers are not covered */
    }
    if (has_entry_hook(function)) {
        return "entry hook";
    }
    if (is_unsplit_coroutine(function)) {
        return "unsplit coroutine";
    }
    if (function.hasFnAttribute(Attribute::SafeStack) || function.hasFnAttribute("split-stack")) {
        return "stack in parts";
    }
    if (target.is_interrupt_handler(function)) {
        return "interrupt handler";
    }
    if (has_assembly_call(reach, function)) {
        return "asm";
    }
    return is_realigned(function) ? "realigns its stack" : nullptr;
}

void unit_pass::handle(Function &function) {
    const char *reason = obstacle(function);
    if (reason == nullptr) {
        emit_judged(function);
    }
    if (function.hasAvailableExternallyLinkage()) {
        return; /* the body is for inlining only */
    }
    SmallVector<Instruction *, 16> calls;
    size_t tail_calls = 0;
    for (Instruction &instruction : instructions(function)) {
        if (!reach.may_allocate(instruction)) {
            continue;
        }
        auto *call = dyn_cast<CallBase>(&instruction);
        if (reason == nullptr && call != nullptr && emit_leaves_frame(target, *call)) {
            tail_calls += 1;
        } else {
            calls.push_back(&instruction);
        }
    }
    if (reason != nullptr) {
        describe(function, 0, calls.size(), reason);
    } else if (calls.empty()) {
        describe(function, 0, 0, tail_calls == 0 ? "no call may allocate" : "only tail calls");
    } else {
        instrument(function, calls);
    }
}

void unit_pass::describe(const Function &function, size_t stores, size_t calls,
                         const std::string &reason) {
    unsigned line;
    const std::string file = options_source(function, &line);
    report.add(function.getName().str(), file + ":" + std::to_string(line), (unsigned)stores,
               (unsigned)calls, reason);
}

void unit_pass::instrument(Function &function, const SmallVectorImpl<Instruction *> &calls) {
    DenseMap<const BasicBlock *, Instruction *> first_call;
    block_set needing;
    for (Instruction *call : calls) {
        first_call.insert({call->getParent(), call}); /* keeps the first */
        needing.insert(call->getParent());
    }
    SmallVector<Instruction *, 8> places;
    for (BasicBlock *block :
         placement_choose(analyses.getResult<DominatorTreeAnalysis>(function),
                          analyses.getResult<BlockFrequencyAnalysis>(function), needing)) {
        Instruction *call = first_call.lookup(block);
        places.push_back(call == nullptr ? block->getTerminator() : call);
    }
    if (places.empty()) {
        describe(function, 0, calls.size(), "calls are never reached");
        return;
    }
    describe(function, places.size(), calls.size(), call_reach::reason(*calls.front()));
    emit_frame_word(target, function, places);
}

} // namespace

PreservedAnalyses frame_word_pass::run(Module &module, ModuleAnalysisManager &analyses) {
    const machine *target = machine_of(module);
    if (target == nullptr) {
        module.getContext().emitError(
            "memtrace: the pass is for x86-64 and AArch64 ELF targets, not for " +
            Twine(machine_name(module)));
        return PreservedAnalyses::all();
    }
    for (Function &function : module) {
        emit_strip(*target, function);
    }
    unit_pass(*target, module,
              analyses.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager())
        .run();
    return PreservedAnalyses::none();
}
