/* SPDX-License-Identifier: MIT */
/*
 * placement.cpp: the cheapest blocks for the stores. See placement.h.
 *
 * On the dominator tree a block that needs a store must have one on its way to the root. So the
 * cost of a subtree is that of one store at its root, if the root itself needs it, and otherwise
 * the less of that and of what its children cost. Loops and hot early exits then pay nothing.
 */
#include "instrument/gcc/placement.h"

namespace {

class placement {
  public:
    placement(function *fun, const std::vector<char> &needs)
        : fun(fun), needs(needs), costs(needs.size()), here(needs.size()) {
    }

    std::vector<basic_block> choose() {
        std::vector<basic_block> order = preorder();
        for (auto block = order.rbegin(); block != order.rend(); ++block) {
            weigh(*block);
        }
        std::vector<basic_block> chosen;
        for (basic_block block : order) {
            basic_block above = get_immediate_dominator(CDI_DOMINATORS, block);
            covered[block->index] = covered[above->index] || here[block->index];
            if (here[block->index] && !covered[above->index]) {
                chosen.push_back(block);
            }
        }
        return chosen;
    }

  private:
    /* All blocks that can be reached, dominators first. */
    std::vector<basic_block> preorder() {
        std::vector<basic_block> order = {ENTRY_BLOCK_PTR_FOR_FN(fun)};
        for (size_t i = 0; i < order.size(); ++i) {
            for (basic_block child = first_dom_son(CDI_DOMINATORS, order[i]); child;
                 child = next_dom_son(CDI_DOMINATORS, child)) {
                order.push_back(child);
            }
        }
        order.erase(order.begin());
        return order;
    }

    void weigh(basic_block block) {
        double cost = frequency(block);
        double below = 0;
        for (basic_block child = first_dom_son(CDI_DOMINATORS, block); child;
             child = next_dom_son(CDI_DOMINATORS, child)) {
            below += costs[child->index];
        }
        here[block->index] = needs[block->index] || (below > 0 && cost <= below);
        costs[block->index] = here[block->index] ? cost : below;
    }

    /* How often the block runs for one run of the function; where only size counts, always 1. Never
     * 0: a store in a block that never runs still takes room. */
    double frequency(basic_block block) {
        const double least = 1e-6;
        bool known;
        if (optimize_function_for_size_p(fun)) {
            return 1;
        }
        double scale =
            block->count.to_sreal_scale(ENTRY_BLOCK_PTR_FOR_FN(fun)->count, &known).to_double();
        return known ? std::max(scale, least) : 1;
    }

    function *fun;
    const std::vector<char> &needs;
    std::vector<double> costs;
    std::vector<char> here;
    std::unordered_map<int, bool> covered;
};

} // namespace

std::vector<basic_block> placement_choose(function *fun, const std::vector<char> &needs) {
    bool had_dominators = dom_info_available_p(fun, CDI_DOMINATORS);
    calculate_dominance_info(CDI_DOMINATORS);
    std::vector<basic_block> chosen = placement(fun, needs).choose();
    if (!had_dominators) {
        free_dominance_info(CDI_DOMINATORS);
    }
    return chosen;
}
