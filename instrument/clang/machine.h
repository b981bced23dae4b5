/* SPDX-License-Identifier: MIT */
/*
 * machine.h: what the pass must know of the machine that Clang makes code for. Clang makes code for
 * all of them, so one plugin knows all of them, too: machine_of() chooses by the unit's target.
 */
#ifndef INSTRUMENT_CLANG_MACHINE_H
#define INSTRUMENT_CLANG_MACHINE_H

#include <llvm/IR/Attributes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <string>

class machine {
  public:
    virtual ~machine() = default;

    /* The variable. */
    virtual llvm::AllocaInst *add_word(llvm::Function &function) const;

    /* Makes the word fresh before `place`, in the form that runtime/machine finds. */
    virtual void add_store(llvm::AllocaInst *word, llvm::Instruction *place) const = 0;

    /* The word that `instruction` tells the runtime of; nullptr: it tells of none. */
    virtual llvm::Value *word_of(const llvm::Instruction &instruction) const = 0;

    /* Whether the text of inline assembly may leave for other code: by call, jump or return. */
    virtual bool assembly_leaves(const std::string &text) const = 0;

    /* How many arguments of a function are passed in registers: integers and pointers; floating
     * point. */
    virtual unsigned general_registers() const = 0;
    virtual unsigned vector_registers() const = 0;

    virtual bool is_interrupt_handler(const llvm::Function &function) const = 0;

    /* Whether a function or a call with these attributes is other than its type tells. */
    virtual bool is_special(const llvm::AttributeList &attributes) const = 0;
};

/* nullptr: the unit's machine has no frame words. */
const machine *machine_of(const llvm::Module &module);

/* As the compiler was told. */
std::string machine_name(const llvm::Module &module);

/* Those that there are. */
const machine &machine_x86_64();
const machine &machine_aarch64();

#endif
