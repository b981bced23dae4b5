/* SPDX-License-Identifier: MIT */
/*
 * difftree.h: the call paths of two models as two trees over one vocabulary of functions, so that
 * they can be compared. Used by diff.c and diffmatch.c.
 *
 * A node is a function that was called from a line of its parent. A leaf is an allocation on a line
 * of its parent and has the costs of the contexts that say so; what is no leaf has none.
 * Functions are the same if their names are, without what compilers append to a copy of one
 * (".constprop.0"), and the base names of their files. Where a file is not known on one side, it is
 * not asked for on the other. All unnamed functions of a module are one, and offsets are its lines.
 * A function that calls itself directly is one node.
 */
#ifndef ANALYZE_REPORT_DIFFTREE_H
#define ANALYZE_REPORT_DIFFTREE_H

#include "analyze/base/numbermap.h"
#include "analyze/report/diff.h"

enum { DIFFTREE_ROOT = 0, DIFFTREE_ALLOCATION = 1 };

/*
 * parent < its own index. children of n: order[first_child .. first_child + child_count), sorted by
 * function and line, once difftree_make() is done.
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

/* Functions of both sides. */
struct difftree_words {
    struct numbermap ids;    /* by hash */
    struct numbermap vague;  /* hashes of names that stand somewhere without a file */
    struct numbermap frames; /* ids by frame */
    uint32_t count;
};

/* Notes the functions of a side; of both before difftree_make(). 0, or -1: out of memory. */
int difftree_note(struct difftree_words *words, const struct diff_side *side);
/* By functions, files or modules the tree is flat: one leaf for each name of innermost frames. */
int difftree_make(struct difftree *tree, struct difftree_words *words, const struct diff_side *side,
                  enum diff_by by);
void difftree_free(struct difftree *tree);
void difftree_free_words(struct difftree_words *words);

#endif
