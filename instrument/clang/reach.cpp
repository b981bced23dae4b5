/* SPDX-License-Identifier: MIT */
/*
 * reach.cpp: a function of the unit may reach an allocator if it has a call that may: to unknown
 * code, or to a function of the unit that may. The set is the least one closed under callers, so
 * recursion needs no special case.
 */
#include "instrument/clang/reach.h"

#include "instrument/clang/options.h"
#include "instrument/no_alloc.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalAlias.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

using namespace llvm;

namespace {

const char promise[] = "memtrace_no_alloc";

/* What sanitizers call has allocators of its own. */
const char *const sanitizer_prefixes[] = {"__asan_", "__hwasan_", "__msan_", "__tsan_"};

bool begins(StringRef text, StringRef prefix) {
    return text.substr(0, prefix.size()) == prefix;
}

/* Whether what runs when `function` is called is certainly this body: not another unit's version
 * of an inline function (which may have kept an allocation that was optimised away here), nor what
 * a loader puts in its place. */
bool is_exact(const Function &function) {
    return function.hasExactDefinition() && function.isDSOLocal();
}

const Function *callee_of(const CallBase &call) {
    const Value *callee = call.getCalledOperand()->stripPointerCasts();
    const auto *alias = dyn_cast<GlobalAlias>(callee);
    if (alias != nullptr && !alias->isInterposable() && alias->isDSOLocal()) {
        callee = alias->getAliaseeObject();
    }
    return dyn_cast_or_null<Function>(callee);
}

/* Intrinsics are instructions or calls of libc's plain functions, but these. */
bool intrinsic_calls(const Function &intrinsic) {
    const StringRef name = intrinsic.getName();
    return begins(name, "llvm.objc.") || begins(name, "llvm.experimental.patchpoint") ||
           begins(name, "llvm.experimental.gc.statepoint") ||
           begins(name, "llvm.experimental.deoptimize") || begins(name, "llvm.coro.") ||
           begins(name, "llvm.instrprof.value");
}

/* Clang up to 18: __attribute__((assume("memtrace_no_alloc"))), which reaches declarations. */
bool has_assumption(Attribute assumption) {
    return assumption.isStringAttribute() &&
           assumption.getValueAsString().find(promise) != StringRef::npos;
}

} // namespace

call_reach::call_reach(const machine &its_machine, Module &module, library_of library)
    : target(its_machine) {
    read_annotations(module);
    find_library(module, library);
    propagate(module);
}

/* __attribute__((annotate("memtrace_no_alloc"))): Clang 14 keeps it for definitions only. */
void call_reach::read_annotations(const Module &module) {
    const GlobalVariable *list = module.getGlobalVariable("llvm.global.annotations");
    if (list == nullptr || !list->hasInitializer()) {
        return;
    }
    for (const Use &use : list->getInitializer()->operands()) {
        const auto *entry = dyn_cast<ConstantStruct>(use);
        if (entry == nullptr || entry->getNumOperands() < 2) {
            continue;
        }
        const auto *function = dyn_cast<Function>(entry->getOperand(0)->stripPointerCasts());
        const auto *text = dyn_cast<GlobalVariable>(entry->getOperand(1)->stripPointerCasts());
        if (function == nullptr || text == nullptr || !text->hasInitializer()) {
            continue;
        }
        const auto *string = dyn_cast<ConstantDataArray>(text->getInitializer());
        if (string != nullptr && string->isCString() && string->getAsCString() == promise) {
            promised.insert(function);
        }
    }
}

/* Functions outside the unit that are known by name, and whose type is the library's. */
void call_reach::find_library(Module &module, library_of library) {
    for (Function &function : module) {
        if (options_no_alloc(function) || has_assumption(function.getFnAttribute("llvm.assume"))) {
            promised.insert(&function);
        }
        if (!function.isDeclarationForLinker() || function.isIntrinsic()) {
            continue;
        }
        const StringRef name = function.getName();
        LibFunc known;
        const TargetLibraryInfo &library_info = library(function);
        const bool other =
            library_info.getLibFunc(name, known) && !library_info.getLibFunc(function, known);
        bool never = no_alloc_listed(std::string_view(name.data(), name.size())) && !other;
        for (const char *prefix : sanitizer_prefixes) {
            never = never || begins(name, prefix);
        }
        if (never) {
            library_never.insert(&function);
        }
    }
}

void call_reach::propagate(Module &module) {
    DenseMap<const Function *, SmallVector<const Function *, 4>> callers;
    SmallVector<const Function *, 32> pending;
    for (const Function &function : module) {
        for (const Instruction &instruction : instructions(function)) {
            const verdict found = judge(instruction);
            if (found == verdict::as_its_callee) {
                callers[callee_of(cast<CallBase>(instruction))].push_back(&function);
            } else if (found == verdict::maybe && reaching.insert(&function).second) {
                pending.push_back(&function);
            }
        }
    }
    while (!pending.empty()) {
        for (const Function *caller : callers.lookup(pending.pop_back_val())) {
            if (reaching.insert(caller).second) {
                pending.push_back(caller);
            }
        }
    }
}

call_reach::verdict call_reach::judge_callee(const Function &callee) const {
    if (promised.count(&callee) || library_never.count(&callee)) {
        return verdict::never;
    }
    if (callee.isIntrinsic()) {
        return intrinsic_calls(callee) ? verdict::maybe : verdict::never;
    }
    return is_exact(callee) ? verdict::as_its_callee : verdict::maybe;
}

call_reach::verdict call_reach::judge(const Instruction &instruction) const {
    if (isa<ResumeInst>(instruction)) {
        return verdict::maybe;
    }
    const auto *call = dyn_cast<CallBase>(&instruction);
    if (call == nullptr || has_assumption(call->getFnAttr("llvm.assume"))) {
        return verdict::never;
    }
    if (call->isInlineAsm()) {
        return is_assembly_call(instruction) ? verdict::maybe : verdict::never;
    }
    const Function *callee = callee_of(*call);
    return callee == nullptr ? verdict::maybe : judge_callee(*callee);
}

bool call_reach::may_allocate(const Instruction &instruction) const {
    const verdict found = judge(instruction);
    if (found != verdict::as_its_callee) {
        return found == verdict::maybe;
    }
    return reaching.count(callee_of(cast<CallBase>(instruction))) != 0;
}

bool call_reach::is_assembly_call(const Instruction &instruction) const {
    const auto *call = dyn_cast<CallBase>(&instruction);
    return call != nullptr && call->isInlineAsm() &&
           target.assembly_leaves(
               StringRef(cast<InlineAsm>(call->getCalledOperand())->getAsmString()).lower());
}

std::string call_reach::reason(const Instruction &instruction) {
    const auto *call = dyn_cast<CallBase>(&instruction);
    if (call == nullptr) {
        return "resumes an exception";
    }
    const Function *callee = callee_of(*call);
    return callee == nullptr ? "indirect call" : "calls " + callee->getName().str();
}
