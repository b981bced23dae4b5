/* SPDX-License-Identifier: MIT */
/*
 * machine_aarch64.cpp: AArch64, for machine.h. Inline assembly gets addresses in registers here, so
 * the store is one of LLVM's own, and what tells the word's place is a prefetch of it: it has the
 * place as its operand, and nothing else prefetches its own variables for execution.
 */
#include "instrument/clang/machine.h"

#include "instrument/assembly.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IRBuilder.h>

using namespace llvm;

namespace {

/* Of llvm.prefetch: PLIL3KEEP, which runtime/machine/aarch64.c looks for. */
enum { READ = 0, THIRD_LEVEL = 1, INSTRUCTIONS = 0 };

bool is_number(const Value *value, uint64_t number) {
    const auto *constant = dyn_cast<ConstantInt>(value);
    return constant != nullptr && constant->getZExtValue() == number;
}

class aarch64_machine final : public machine {
  public:
    AllocaInst *add_word(Function &function) const override {
        AllocaInst *word = machine::add_word(function);
        word->setAlignment(Align(sizeof(uint64_t))); /* a prefetch has multiples of eight */
        return word;
    }

    void add_store(AllocaInst *word, Instruction *place) const override {
        IRBuilder<> builder(place);
        builder.SetCurrentDebugLocation(DebugLoc());
        builder.CreateStore(builder.getInt32(0), word, /*isVolatile=*/true);
        builder.CreateIntrinsic(Intrinsic::prefetch, {word->getType()},
                                {word, builder.getInt32(READ), builder.getInt32(THIRD_LEVEL),
                                 builder.getInt32(INSTRUCTIONS)});
    }

    Value *word_of(const Instruction &instruction) const override {
        const auto *hint = dyn_cast<IntrinsicInst>(&instruction);
        if (hint == nullptr || hint->getIntrinsicID() != Intrinsic::prefetch ||
            !is_number(hint->getArgOperand(1), READ) ||
            !is_number(hint->getArgOperand(2), THIRD_LEVEL) ||
            !is_number(hint->getArgOperand(3), INSTRUCTIONS)) {
            return nullptr;
        }
        return dyn_cast<AllocaInst>(hint->getArgOperand(0));
    }

    bool assembly_leaves(const std::string &text) const override {
        return assembly::any_statement(text, assembly::aarch64_leaves);
    }

    unsigned general_registers() const override {
        return 8;
    }

    unsigned vector_registers() const override {
        return 8;
    }

    bool is_interrupt_handler(const Function &) const override {
        return false;
    }

    /* Streaming mode and the like (SME), which calls switch on and off. */
    bool is_special(const AttributeList &attributes) const override {
        return any_of(attributes.getFnAttrs(), [](const Attribute &attribute) {
            return attribute.isStringAttribute() &&
                   attribute.getKindAsString().find("aarch64_") == 0;
        });
    }
};

} // namespace

const machine &machine_aarch64() {
    static const aarch64_machine only;
    return only;
}
