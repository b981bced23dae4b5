/* SPDX-License-Identifier: MIT */
/*
 * diffmatch.h: the call paths of two models as two trees over one vocabulary of functions, and
 * which leaf of one is which of the other. Used by diff.c, which makes the trees.
 *
 * A node is a function that was called from a line of its parent. A leaf is an allocation on a line
 * of its parent and has the costs of the contexts that say so; what is no leaf has none.
 * Functions are the same if their names are, without what compilers append to a copy of one
 * (".constprop.0"), and the base names of their files. Where a file is not known on one side, it is
 * not asked for on the other. All unnamed functions of a module are one, and offsets are its lines.
 * A function that calls itself directly is one node.
 *
 * They are matched from the outermost functions in: the children of two nodes that match are
 * compared function by function. Of calls of one function from several lines
 *   in the same build      those from the same line match
 *   with a tolerance       as many as can, in their order, no further apart than that
 *   else                   in their order, as many as there are on both sides, so that they are
 *                          shifted against each other as evenly as can be
 * What lies below a node without a match has none either, but for paths that lack functions
 * (diffmatch.c).
 */
#ifndef ANALYZE_REPORT_DIFFMATCH_H
#define ANALYZE_REPORT_DIFFMATCH_H

#include "analyze/base/numbermap.h"
#include "analyze/report/diff.h"

enum { DIFFTREE_ROOT = 0, DIFFTREE_ALLOCATION = 1 };

/*
 * parent < its own index. children of n: order[first_child .. first_child + child_count), sorted by
 * function and line, once the tree is made.
 */
struct difftree_node {
    uint64_t line;  /* in the parent, or an offset in its module */
    uint64_t build; /* which build the function's lines are of; 0: not known */
    uint64_t dearest;
    uint32_t parent;
    uint32_t function;
    uint32_t first_child;
    uint32_t child_count;
    uint32_t context; /* of leaves: that with most allocated bytes */
    bool named;       /* its children's lines are lines, not offsets */
    struct diff_costs costs;
};

struct difftree {
    struct difftree_node *nodes; /* [0] is the root */
    uint32_t *order;
    size_t count;
    size_t capacity;
    struct numbermap children; /* by parent, function and line, while it is made */
};

#define DIFFMATCH_NONE UINT32_MAX

/* Called for each pair of leaves; DIFFMATCH_NONE where one is alone. */
typedef void diffmatch_pair(void *context, uint32_t left, uint32_t right);
void diffmatch(const struct difftree trees[2], uint32_t line_tolerance, diffmatch_pair *pair,
               void *context);

/* Pairs two ascending lists of lines: to[i] is the place of left[i]'s partner or DIFFMATCH_NONE,
 * and partners ascend. */
void diffmatch_lines(const uint64_t *left, size_t left_count, const uint64_t *right,
                     size_t right_count, uint64_t tolerance, uint32_t *to);
#define DIFFMATCH_ANY UINT64_MAX

#endif
