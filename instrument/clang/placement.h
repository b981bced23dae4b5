/* SPDX-License-Identifier: MIT */
/*
 * placement.h: where to store so that every block in need comes after a store on every path, and
 * stores run as seldom as possible.
 */
#ifndef INSTRUMENT_CLANG_PLACEMENT_H
#define INSTRUMENT_CLANG_PLACEMENT_H

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/BlockFrequencyInfo.h>
#include <llvm/IR/Dominators.h>

using block_set = llvm::DenseSet<const llvm::BasicBlock *>;

/* The blocks of the cheapest cover: each block of `needing` is dominated by one of them, or is one
 * itself. A chosen block that is not in need stores before it is left. */
llvm::SmallVector<llvm::BasicBlock *, 8> placement_choose(const llvm::DominatorTree &tree,
                                                          const llvm::BlockFrequencyInfo &frequency,
                                                          const block_set &needing);

#endif
