/* SPDX-License-Identifier: MIT */
/* machine_x86_64.cpp: x86-64, for machine.h: the store is inline assembly, so that nothing changes
 * its form. */
#include "instrument/clang/machine.h"

#include "runtime/stack/frame_word.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IRBuilder.h>

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

class x86_64_machine final : public machine {
  public:
    void add_store(AllocaInst *word, Instruction *place) const override {
        IRBuilder<> builder(place);
        builder.SetCurrentDebugLocation(DebugLoc());
        CallInst *store = builder.CreateCall(store_assembly(word->getType()), {word});
        store->addParamAttr(0, Attribute::get(word->getContext(), Attribute::ElementType,
                                              word->getAllocatedType()));
        store->addFnAttr(Attribute::NoUnwind);
    }

    Value *word_of(const Instruction &instruction) const override {
        const auto *call = dyn_cast<CallInst>(&instruction);
        const auto *assembly =
            call == nullptr ? nullptr : dyn_cast<InlineAsm>(call->getCalledOperand());
        return assembly != nullptr && StringRef(assembly->getAsmString()) == store_text()
                   ? call->getArgOperand(0)
                   : nullptr;
    }

    /* Not by a system call; jumps to numbered labels are inside. */
    bool assembly_leaves(const std::string &text) const override {
        for (const std::string word : {"call", "jmp", "ret"}) {
            for (size_t at = text.find(word); at != std::string::npos;
                 at = text.find(word, at + 1)) {
                const size_t target = text.find_first_not_of("q \t", at + word.size());
                const bool system =
                    word == "call" && at >= 3 && text.compare(at - 3, 3, "sys") == 0;
                const bool label =
                    word == "jmp" && target != std::string::npos && isDigit(text[target]);
                if (!system && !label) {
                    return true;
                }
            }
        }
        return false;
    }

    unsigned general_registers() const override {
        return 6;
    }

    unsigned vector_registers() const override {
        return 8;
    }

    bool is_interrupt_handler(const Function &function) const override {
        return function.getCallingConv() == CallingConv::X86_INTR;
    }

    bool is_special(const AttributeList &) const override {
        return false;
    }
};

} // namespace

const machine &machine_x86_64() {
    static const x86_64_machine only;
    return only;
}
