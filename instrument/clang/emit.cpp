/* SPDX-License-Identifier: MIT */
/* emit.cpp: see emit.h; what the store is like is the machine's business. */
#include "instrument/clang/emit.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

using namespace llvm;
using PatternMatch::m_Zero;
using PatternMatch::match;

namespace {

/* All that may be left of a word of which the runtime is told no more: stores, where the machine
 * has one in LLVM's terms, and marks of its lifetime, which inlining added. */
bool is_left_over(const User *user) {
    const auto *store = dyn_cast<StoreInst>(user);
    return store != nullptr ? store->isVolatile() && match(store->getValueOperand(), m_Zero())
                            : cast<Instruction>(user)->isLifetimeStartOrEnd();
}

void drop_if_unused(Value *word) {
    auto *variable = dyn_cast<AllocaInst>(word);
    if (variable == nullptr || !all_of(variable->users(), is_left_over)) {
        return;
    }
    while (!variable->use_empty()) {
        cast<Instruction>(variable->user_back())->eraseFromParent();
    }
    variable->eraseFromParent();
}

bool has_alloca(const Function &function) {
    return any_of(instructions(function), [](const Instruction &i) { return isa<AllocaInst>(i); });
}

void want_unwind_table(Function &function) {
#if LLVM_VERSION_MAJOR >= 15
    function.setUWTableKind(UWTableKind::Async);
#else
    function.addFnAttr(Attribute::UWTable);
#endif
}

bool same_in_registers(Type *a, Type *b) {
    return a == b || (a->isPointerTy() && b->isPointerTy() &&
                      a->getPointerAddressSpace() == b->getPointerAddressSpace());
}

/* Whether all arguments of the type are passed in registers, whatever they are. */
bool plain_arguments(const machine &target, const FunctionType &type) {
    unsigned general = 0;
    unsigned vector = 0;
    for (Type *parameter : type.params()) {
        if (parameter->isPointerTy() || parameter->isIntegerTy()) {
            general += 1;
            if (parameter->isIntegerTy() && parameter->getIntegerBitWidth() > 64) {
                return false;
            }
        } else if (parameter->isFloatTy() || parameter->isDoubleTy()) {
            vector += 1;
        } else {
            return false;
        }
    }
    return general <= target.general_registers() && vector <= target.vector_registers();
}

bool has_special_argument(const AttributeList &attributes, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        for (const Attribute::AttrKind kind :
             {Attribute::ByVal, Attribute::StructRet, Attribute::InAlloca, Attribute::InReg,
              Attribute::StackAlignment, Attribute::SwiftSelf, Attribute::SwiftError,
              Attribute::SwiftAsync, Attribute::Preallocated, Attribute::ByRef, Attribute::Nest}) {
            if (attributes.hasParamAttr(i, kind)) {
                return true;
            }
        }
    }
    return false;
}

bool same_extension(const AttributeList &a, const AttributeList &b) {
    return a.hasRetAttr(Attribute::ZExt) == b.hasRetAttr(Attribute::ZExt) &&
           a.hasRetAttr(Attribute::SExt) == b.hasRetAttr(Attribute::SExt);
}

/* Whether nothing follows the call but the return of its value. */
bool is_followed_by_return(const CallInst &call) {
    const Instruction *next = call.getNextNode();
    const Value *value = &call;
    if (const auto *cast = dyn_cast<BitCastInst>(next)) {
        if (cast->getOperand(0) != value) {
            return false;
        }
        value = cast;
        next = cast->getNextNode();
    }
    const auto *leave = dyn_cast<ReturnInst>(next);
    return leave != nullptr &&
           (leave->getReturnValue() == nullptr || leave->getReturnValue() == value);
}

/* The rules of musttail, and a function whose frame is plain. */
bool can_be_musttail(const machine &target, const CallInst &call) {
    const Function &function = *call.getFunction();
    const FunctionType &own = *function.getFunctionType();
    const FunctionType &called = *call.getFunctionType();
    if (own.isVarArg() || called.isVarArg() || own.getNumParams() != called.getNumParams() ||
        !same_in_registers(own.getReturnType(), called.getReturnType()) ||
        !plain_arguments(target, own) || !plain_arguments(target, called)) {
        return false;
    }
    for (unsigned i = 0; i < own.getNumParams(); i++) {
        if (!same_in_registers(own.getParamType(i), called.getParamType(i))) {
            return false;
        }
    }
    return call.getCallingConv() == function.getCallingConv() && !call.hasOperandBundles() &&
           !target.is_special(function.getAttributes()) &&
           !target.is_special(call.getAttributes()) &&
           !has_special_argument(function.getAttributes(), own.getNumParams()) &&
           !has_special_argument(call.getAttributes(), called.getNumParams()) &&
           same_extension(function.getAttributes(), call.getAttributes()) &&
           function.getFnAttribute("disable-tail-calls").getValueAsString() != "true" &&
           !function.callsFunctionThatReturnsTwice() && is_followed_by_return(call);
}

} // namespace

void emit_frame_word(const machine &target, Function &function, ArrayRef<Instruction *> places) {
    /* Only variables ask for a stack protector, and the word is not one to protect. */
    if (!has_alloca(function)) {
        function.removeFnAttr(Attribute::StackProtectStrong);
    }
    AllocaInst *word = target.add_word(function);
    for (Instruction *place : places) {
        target.add_store(word, place);
    }
    want_unwind_table(function);
}

void emit_strip(const machine &target, Function &function) {
    SmallVector<Instruction *, 8> marks;
    SmallPtrSet<Value *, 8> words;
    for (Instruction &instruction : instructions(function)) {
        if (Value *word = target.word_of(instruction)) {
            marks.push_back(&instruction);
            words.insert(word);
        }
    }
    for (Instruction *mark : marks) {
        mark->eraseFromParent();
    }
    for (Value *word : words) {
        drop_if_unused(word);
    }
}

void emit_judged(Function &function) {
    /* Direct calls are inlined by now; what is left must obey the attribute below. */
    function.removeFnAttr(Attribute::AlwaysInline);
    /* A function is inlined into those alone whose attribute is the same. This one says whether a
     * profile of samples is to be used, by being there: with this value it means what no value
     * means, and is another. */
    function.addFnAttr("use-sample-profile", "false");
}

bool emit_leaves_frame(const machine &target, CallBase &call) {
    auto *plain = dyn_cast<CallInst>(&call);
    if (plain == nullptr) {
        return false;
    }
    if (plain->isTailCall() && !plain->isMustTailCall() && can_be_musttail(target, *plain)) {
        plain->setTailCallKind(CallInst::TCK_MustTail);
    }
    return plain->isMustTailCall();
}
