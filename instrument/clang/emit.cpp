/* SPDX-License-Identifier: MIT */
/* emit.cpp: the store, as inline assembly, so that nothing changes its form. */
#include "instrument/clang/emit.h"

#include "runtime/stack/frame_word.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

using namespace llvm;

namespace {

/* Same text for every store, so that a later run knows them. */
std::string store_text() {
    const std::string value = std::to_string(FRAME_WORD_FRESH);
    return "movl $$" + value + ", $0";
}

InlineAsm *store_assembly(PointerType *pointer) {
    FunctionType *type =
        FunctionType::get(Type::getVoidTy(pointer->getContext()), {pointer}, false);
    return InlineAsm::get(type, store_text(), "=*m", /*hasSideEffects=*/true);
}

AllocaInst *add_word(Function &function) {
    BasicBlock &entry = function.getEntryBlock();
    IRBuilder<> builder(&entry, entry.begin());
    return builder.CreateAlloca(builder.getInt32Ty(), nullptr, "memtrace.word");
}

void add_store(AllocaInst *word, Instruction *before) {
    IRBuilder<> builder(before);
    builder.SetCurrentDebugLocation(DebugLoc());
    CallInst *store = builder.CreateCall(store_assembly(word->getType()), {word});
    store->addParamAttr(
        0, Attribute::get(word->getContext(), Attribute::ElementType, word->getAllocatedType()));
    store->addFnAttr(Attribute::NoUnwind);
}

bool is_lifetime_mark(const User *user) {
    const auto *instruction = dyn_cast<Instruction>(user);
    return instruction != nullptr && instruction->isLifetimeStartOrEnd();
}

/* A word without stores; inlining may have added marks of its lifetime. */
void drop_if_unused(Value *word) {
    auto *variable = dyn_cast<AllocaInst>(word);
    if (variable == nullptr || !all_of(variable->users(), is_lifetime_mark)) {
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
bool plain_arguments(const FunctionType &type) {
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
    return general <= 6 && vector <= 8;
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
bool can_be_musttail(const CallInst &call) {
    const Function &function = *call.getFunction();
    const FunctionType &own = *function.getFunctionType();
    const FunctionType &called = *call.getFunctionType();
    if (own.isVarArg() || called.isVarArg() || own.getNumParams() != called.getNumParams() ||
        !same_in_registers(own.getReturnType(), called.getReturnType()) || !plain_arguments(own) ||
        !plain_arguments(called)) {
        return false;
    }
    for (unsigned i = 0; i < own.getNumParams(); i++) {
        if (!same_in_registers(own.getParamType(i), called.getParamType(i))) {
            return false;
        }
    }
    return call.getCallingConv() == function.getCallingConv() && !call.hasOperandBundles() &&
           !has_special_argument(function.getAttributes(), own.getNumParams()) &&
           !has_special_argument(call.getAttributes(), called.getNumParams()) &&
           same_extension(function.getAttributes(), call.getAttributes()) &&
           function.getFnAttribute("disable-tail-calls").getValueAsString() != "true" &&
           !function.callsFunctionThatReturnsTwice() && is_followed_by_return(call);
}

} // namespace

void emit_frame_word(Function &function, ArrayRef<Instruction *> places) {
    /* Only variables ask for a stack protector, and the word is not one to protect. */
    if (!has_alloca(function)) {
        function.removeFnAttr(Attribute::StackProtectStrong);
    }
    AllocaInst *word = add_word(function);
    for (Instruction *place : places) {
        add_store(word, place);
    }
    want_unwind_table(function);
}

void emit_strip(Function &function) {
    SmallVector<Instruction *, 8> stores;
    for (Instruction &instruction : instructions(function)) {
        const auto *call = dyn_cast<CallInst>(&instruction);
        const auto *assembly =
            call == nullptr ? nullptr : dyn_cast<InlineAsm>(call->getCalledOperand());
        if (assembly != nullptr && StringRef(assembly->getAsmString()) == store_text()) {
            stores.push_back(&instruction);
        }
    }
    SmallPtrSet<Value *, 8> words;
    for (Instruction *store : stores) {
        words.insert(store->getOperand(0));
        store->eraseFromParent();
    }
    for (Value *word : words) {
        drop_if_unused(word);
    }
}

void emit_judged(Function &function) {
    /* Direct calls are inlined by now; what is left must obey the attribute below. */
    function.removeFnAttr(Attribute::AlwaysInline);
    /* On this target it means nothing else than "do not inline into functions without it". */
    function.addFnAttr(Attribute::SanitizeMemTag);
}

bool emit_leaves_frame(CallBase &call) {
    auto *plain = dyn_cast<CallInst>(&call);
    if (plain == nullptr) {
        return false;
    }
    if (plain->isTailCall() && !plain->isMustTailCall() && can_be_musttail(*plain)) {
        plain->setTailCallKind(CallInst::TCK_MustTail);
    }
    return plain->isMustTailCall();
}
