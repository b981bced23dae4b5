/* SPDX-License-Identifier: MIT */
/*
 * named.cpp: the reports of functions that allocate. See named.h.
 *
 * The arguments of a function are values here that never change, so they are at its return what
 * they were at its beginning. How they are numbered is as the machine passes them, which is how
 * Clang hands them on: a small struct is as many numbers as registers.
 */
#include "instrument/clang/named.h"

#include "instrument/allocators/recorded.h"
#include "instrument/allocators/wanted.h"
#include "instrument/clang/options.h"
#include "instrument/no_alloc.h"
#include "memtrace/named.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/EscapeEnumerator.h>

using namespace llvm;

namespace {

/* What is done once, where passes run again on the linked unit. */
const char done[] = "memtrace-named";

std::string symbol_of(const Function &function) {
    const StringRef name = function.getName();
    return name.substr(name.substr(0, 1) == "\1" ? 1 : 0).str();
}

PointerType *pointer_type(LLVMContext &context) {
#if LLVM_VERSION_MAJOR >= 15
    return PointerType::get(context, 0);
#else
    return PointerType::get(Type::getInt8Ty(context), 0);
#endif
}

/* ---- The function as it is declared ---- */

value_class class_of(Type *type) {
    return type->isVoidTy()                                              ? value_class::NOTHING
           : type->isPointerTy()                                         ? value_class::POINTER
           : type->isIntegerTy() && type->getIntegerBitWidth() <= 64     ? value_class::NUMBER
           : type->isHalfTy() || type->isFloatTy() || type->isDoubleTy() ? value_class::FLOATING
                                                                         : value_class::OTHER;
}

bool is_in_memory(const Argument &argument) {
    return argument.hasByValAttr() || argument.hasStructRetAttr() || argument.hasInAllocaAttr() ||
           argument.hasPreallocatedAttr();
}

function_shape shape_of(const Function &function) {
    function_shape shape;
    for (const Argument &it : function.args()) {
        shape.parameters.push_back(
            {is_in_memory(it) ? value_class::OTHER : class_of(it.getType()), it.getName().str()});
    }
    shape.result = class_of(function.getReturnType());
    return shape;
}

/* Calls that the language wants to be jumps leave nothing behind them. */
bool ends_in_jump(Function &function) {
    return any_of(function,
                  [](BasicBlock &block) { return block.getTerminatingMustTailCall() != nullptr; });
}

/* ---- The reports ---- */

/* Puts the reports into one function. */
class reporter {
  public:
    reporter(Function &its_function, const wanted &what, const wanted_places &where)
        : function(its_function), module(*its_function.getParent()),
          context(its_function.getContext()), it(what), places(where),
          pointer(pointer_type(context)), number(Type::getInt64Ty(context)) {
    }

    void report() {
        record = make_record();
        if (!it.allocates()) {
            report_start();
            return;
        }
        IRBuilder<> builder(context);
        set_to_start(builder);
        size = argument(builder, places.size, 0);
        times = argument(builder, places.times, 1);
        align = argument(builder, places.align, 0);
        if (places.pointer >= 0) {
            nowhere = builder.CreateAlloca(pointer);
            builder.CreateStore(ConstantPointerNull::get(pointer), nowhere);
        }
        if (it.signature.kind == MEMTRACE_ALLOCATOR_REALLOC) {
            Type *words = ArrayType::get(number, MEMTRACE_NAMED_KEPT);
            kept = builder.CreatePointerCast(builder.CreateAlloca(words), pointer);
            call(builder, "memtrace_named_resizes",
                 {record, as_pointer(builder, places.old_block), kept});
            report_exits();
        } else {
            report_returns();
        }
    }

  private:
    /* Behind the variables of the function, which have to stay in its first block. Calls that are
     * inlined need the place of a line. */
    void set_to_start(IRBuilder<> &builder) {
        BasicBlock &entry = function.getEntryBlock();
        BasicBlock::iterator start = entry.getFirstInsertionPt();
        for (BasicBlock::iterator i = start; i != entry.end(); ++i) {
            const auto *variable = dyn_cast<AllocaInst>(i);
            start = variable != nullptr && variable->isStaticAlloca() ? std::next(i) : start;
        }
        builder.SetInsertPoint(&entry, start);
        if (DISubprogram *subprogram = function.getSubprogram()) {
            builder.SetCurrentDebugLocation(
                DILocation::get(context, subprogram->getLine(), 0, subprogram));
        }
    }

    /* As it came; `otherwise`, if none is meant. */
    Value *argument(IRBuilder<> &builder, int place, uint64_t otherwise) {
        if (place < 0) {
            return builder.getInt64(otherwise);
        }
        Argument *value = function.getArg((unsigned)place);
        return builder.CreateIntCast(value, number, value->hasSExtAttr());
    }

    Value *as_pointer(IRBuilder<> &builder, int place) {
        if (place < 0) {
            return ConstantPointerNull::get(pointer);
        }
        return to_pointer(builder, function.getArg((unsigned)place));
    }

    Value *to_pointer(IRBuilder<> &builder, Value *value) {
        return value->getType()->isPointerTy() ? builder.CreatePointerCast(value, pointer)
                                               : builder.CreateIntToPtr(value, pointer);
    }

    /* Its address. An inline function may have no body of its own to refer to. */
    Constant *make_record() {
        const std::string data = wanted_data(it, symbol_of(function));
        const bool is_somewhere = !function.hasAvailableExternallyLinkage() &&
                                  !function.hasFnAttribute(Attribute::AlwaysInline);
        Constant *bytes = ConstantDataArray::getString(context, data, /*AddNull=*/false);
        StructType *type = StructType::get(context, {pointer, number, bytes->getType()});
        Constant *where = is_somewhere ? ConstantExpr::getPointerCast(&function, pointer)
                                       : ConstantPointerNull::get(pointer);
        auto *variable = new GlobalVariable(
            module, type, /*isConstant=*/false, GlobalValue::InternalLinkage,
            ConstantStruct::get(type, {where, ConstantInt::get(number, 0), bytes}),
            "memtrace_named");
        variable->setAlignment(Align(sizeof(uint64_t)));
        return ConstantExpr::getPointerCast(variable, pointer);
    }

    /* Not for who has no runtime. The builder goes on behind it. */
    void call(IRBuilder<> &builder, const char *name, ArrayRef<Value *> arguments) {
        SmallVector<Type *, 8> types;
        for (Value *value : arguments) {
            types.push_back(value->getType());
        }
        FunctionCallee callee = module.getOrInsertFunction(
            name, FunctionType::get(builder.getVoidTy(), types, /*isVarArg=*/false));
        auto *declared = cast<Function>(callee.getCallee());
        declared->setLinkage(GlobalValue::ExternalWeakLinkage);
        declared->setDoesNotThrow();
        Instruction *next = &*builder.GetInsertPoint();
        const DebugLoc line = builder.getCurrentDebugLocation();
        Value *is_there = builder.CreateIsNotNull(declared);
        Instruction *end = SplitBlockAndInsertIfThen(is_there, next, /*Unreachable=*/false);
        IRBuilder<> there(end);
        there.SetCurrentDebugLocation(line);
        there.CreateCall(callee, arguments)->setDoesNotThrow();
        builder.SetInsertPoint(next);
        builder.SetCurrentDebugLocation(line);
    }

    void report_start() {
        IRBuilder<> builder(context);
        set_to_start(builder);
        call(builder, "memtrace_named_leaves", {record, as_pointer(builder, places.pointer)});
    }

    /* Where the function writes the block's address there is one if it returns 0. */
    Value *block_of(IRBuilder<> &builder, Value *result) {
        if (places.pointer < 0) {
            return to_pointer(builder, result);
        }
        Value *where = builder.CreatePointerCast(function.getArg((unsigned)places.pointer),
                                                 nowhere->getType());
        where = builder.CreateSelect(builder.CreateIsNull(result), where, nowhere);
        return builder.CreateLoad(pointer, where);
    }

    void report_block(IRBuilder<> &builder, Value *block, Value *bytes) {
        Value *taken = kept == nullptr ? ConstantPointerNull::get(pointer) : kept;
        call(builder, "memtrace_named_returns", {record, block, bytes, times, align, taken});
    }

    void report_return(ReturnInst *leave) {
        IRBuilder<> builder(leave);
        report_block(builder, block_of(builder, leave->getReturnValue()), size);
    }

    void report_returns() {
        SmallVector<ReturnInst *, 4> returns;
        for (BasicBlock &block : function) {
            if (auto *leave = dyn_cast<ReturnInst>(block.getTerminator())) {
                returns.push_back(leave);
            }
        }
        for (ReturnInst *leave : returns) {
            report_return(leave);
        }
    }

    /* By an exception, too: it has not got what it wanted, so there is no block. */
    void report_exits() {
        EscapeEnumerator exits(function, "memtrace.failed");
        while (IRBuilder<> *builder = exits.Next()) {
            Instruction *exit = &*builder->GetInsertPoint();
            if (auto *leave = dyn_cast<ReturnInst>(exit)) {
                report_return(leave);
            } else {
                IRBuilder<> failed(exit);
                report_block(failed, ConstantPointerNull::get(pointer), failed.getInt64(1));
            }
        }
    }

    Function &function;
    Module &module;
    LLVMContext &context;
    const wanted &it;
    const wanted_places &places;
    PointerType *pointer;
    IntegerType *number;
    Constant *record = nullptr;
    Value *size = nullptr, *times = nullptr, *align = nullptr, *kept = nullptr;
    AllocaInst *nowhere = nullptr; /* holds no block */
};

/* ---- Where a function gets its memory ---- */

void look_into(const Function &function, SmallPtrSetImpl<const Function *> &seen,
               memory_origin &found) {
    if (!seen.insert(&function).second) {
        return;
    }
    for (const Instruction &instruction : instructions(function)) {
        const auto *call = dyn_cast<CallBase>(&instruction);
        if (call == nullptr || call->isInlineAsm() || call->doesNotReturn()) {
            continue; /* what never returns brings no memory */
        }
        const auto *callee =
            dyn_cast<Function>(call->getCalledOperand()->stripPointerCastsAndAliases());
        if (callee == nullptr) {
            found.add(memory_source::UNKNOWN, "an indirect call");
        } else if (!callee->isDeclaration()) {
            look_into(*callee, seen, found);
        } else if (!callee->isIntrinsic() && !callee->doesNotReturn()) {
            const std::string symbol = symbol_of(*callee);
            found.add(recorded_source(symbol, no_alloc_listed(symbol)), symbol);
        }
    }
}

/* ---- What attributes propose ---- */

/* Malloc and its kin are seen anyway. */
bool proposes(const Function &function) {
    return (function.returnDoesNotAlias() || function.hasFnAttribute(Attribute::AllocSize)) &&
           recorded_source(symbol_of(function), false) != memory_source::MALLOC;
}

/* The number of an argument; 0: it has none. */
unsigned number_of(const function_shape &shape, unsigned place) {
    unsigned number = 0;
    for (unsigned i = 0; i <= place && i < shape.parameters.size(); ++i) {
        const value_class type = shape.parameters[i].type;
        if (type == value_class::OTHER) {
            return 0;
        }
        number += type != value_class::FLOATING;
    }
    return number;
}

/* Without `malloc` it may give back an older block. */
wanted proposed_by(const Function &function, const function_shape &shape) {
    if (!function.returnDoesNotAlias() || !function.hasFnAttribute(Attribute::AllocSize)) {
        return wanted_proposed(symbol_of(function), 0, 0);
    }
    const auto places = function.getFnAttribute(Attribute::AllocSize).getAllocSizeArgs();
    return wanted_proposed(symbol_of(function), number_of(shape, places.first),
                           places.second ? number_of(shape, *places.second) : 0);
}

std::string place_of(const Function &function) {
    unsigned line;
    const std::string file = options_source(function, &line);
    return file + ':' + std::to_string(line);
}

/* ---- The pass ---- */

/* With the function's place. What a pattern fits by chance is left alone, too. */
void complain(const Function &function, const wanted &it, const std::string &why) {
    const DISubprogram *subprogram = function.getSubprogram();
    function.getContext().diagnose(DiagnosticInfoUnsupported(
        function, "MemTrace: '" + it.text + "' does not fit it: " + why,
        subprogram != nullptr ? DiagnosticLocation(subprogram) : DiagnosticLocation(),
        it.is_certain ? DS_Error : DS_Warning));
}

void handle(Function &function, const wanted &it) {
    wanted_places places;
    std::string why;
    if (!wanted_fits(it, shape_of(function), places, why)) {
        complain(function, it, why);
    } else if (function.hasFnAttribute(Attribute::Naked)) {
        complain(function, it, "it is naked");
    } else if (it.allocates() && ends_in_jump(function)) {
        complain(function, it, "it ends in a call that has to be a jump");
    } else {
        reporter(function, it, places).report();
        recorded_found(it.text, symbol_of(function), place_of(function));
    }
}

void propose(Function &function) {
    const function_shape shape = shape_of(function);
    const wanted it = proposed_by(function, shape);
    SmallPtrSet<const Function *, 16> seen;
    memory_origin found;
    wanted_places places;
    std::string why;
    look_into(function, seen, found);
    recorded_proposal(symbol_of(function), place_of(function), it.text, found);
    if (wanted_is_auto() && found.kind == memory_source::OWN && !it.text.empty() &&
        wanted_fits(it, shape, places, why) && !ends_in_jump(function)) {
        reporter(function, it, places).report();
        recorded_found("auto", symbol_of(function), place_of(function));
    }
}

} // namespace

PreservedAnalyses named_pass::run(Module &module, ModuleAnalysisManager &) {
    std::string why;
    if (!options_read_allocators(why)) {
        module.getContext().emitError("memtrace: allocators: " + why);
        return PreservedAnalyses::all();
    }
    for (Function &function : module) {
        const wanted *it = nullptr;
        if (function.isDeclaration() || function.hasFnAttribute(done)) {
            continue;
        }
        it = wanted_find(symbol_of(function));
        if (it != nullptr || proposes(function)) {
            function.addFnAttr(done);
        }
        if (it != nullptr) {
            handle(function, *it);
        } else if (proposes(function)) {
            propose(function);
        }
    }
    const std::string record = recorded_assembly();
    if (!record.empty()) {
        module.appendModuleInlineAsm(record);
    }
    return record.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}
