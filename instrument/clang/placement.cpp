/* SPDX-License-Identifier: MIT */
/*
 * placement.cpp: a store in a block covers what the block dominates, so the choice is between one
 * store in a block and the cheapest covers of its children in the dominator tree; children first.
 */
#include "instrument/clang/placement.h"

#include <llvm/ADT/DenseMap.h>

using namespace llvm;

namespace {

struct choice {
    uint64_t cost = 0;   /* of covering the subtree */
    unsigned stores = 0; /* in its children's subtrees; 0: nothing there is in need */
    bool here = false;   /* by one store in this block */
};

using choice_map = DenseMap<const BasicBlock *, choice>;

uint64_t saturating_sum(uint64_t a, uint64_t b) {
    return a + b < a ? UINT64_MAX : a + b;
}

/* One store in the block, or those of its children: fewer executions first, then less code. */
choice choose(const DomTreeNode &node, uint64_t frequency, bool needs, const choice_map &choices) {
    choice children;
    for (const DomTreeNode *child : node) {
        const choice &below = choices.find(child->getBlock())->second;
        children.cost = saturating_sum(children.cost, below.cost);
        children.stores += below.here ? 1 : below.stores;
    }
    if (needs || frequency < children.cost || (frequency == children.cost && children.stores > 1)) {
        return {frequency, 1, true};
    }
    return children;
}

/* Parents before children. */
SmallVector<const DomTreeNode *, 32> preorder(const DominatorTree &tree) {
    SmallVector<const DomTreeNode *, 32> order = {tree.getRootNode()};
    for (size_t at = 0; at < order.size(); at++) {
        const DomTreeNode *node = order[at];
        order.append(node->begin(), node->end());
    }
    return order;
}

} // namespace

SmallVector<BasicBlock *, 8> placement_choose(const DominatorTree &tree,
                                              const BlockFrequencyInfo &frequency,
                                              const block_set &needing) {
    const SmallVector<const DomTreeNode *, 32> order = preorder(tree);
    choice_map choices;
    for (size_t at = order.size(); at-- > 0;) {
        BasicBlock *block = order[at]->getBlock();
        choices[block] = choose(*order[at], frequency.getBlockFreq(block).getFrequency(),
                                needing.count(block) != 0, choices);
    }
    SmallVector<BasicBlock *, 8> chosen;
    SmallVector<const DomTreeNode *, 32> open = {tree.getRootNode()};
    while (!open.empty()) {
        const DomTreeNode *node = open.pop_back_val();
        if (choices[node->getBlock()].here) {
            chosen.push_back(node->getBlock());
        } else {
            open.append(node->begin(), node->end());
        }
    }
    return chosen;
}
