/* SPDX-License-Identifier: MIT */
/*
 * calltree.h: contexts merged into a tree of functions, from main down to the allocating function
 * or from the allocating function up to main, with costs added up.
 *
 * Called inside analyze/report. Invariants, for every call but the root (index 0):
 *   parent < its own index
 *   cost = self + sum of the children's cost   (bottom-up: where the call was expanded)
 */
#ifndef ANALYZE_REPORT_CALLTREE_H
#define ANALYZE_REPORT_CALLTREE_H

#include "analyze/report/report.h"

struct call {
    const struct names_frame *frame; /* NULL: the root */
    struct cost cost;                /* of all paths through here */
    struct cost self;                /* of the paths that end here */
    uint32_t parent;
    uint32_t first_child; /* 0: none; after calltree_sort the dearest */
    uint32_t next;        /* sibling; 0: none */
    uint32_t first_line;  /* of the lines met; 0: none known */
    uint32_t last_line;
    bool recursive; /* calls of itself are in here, unless options.all_frames */
    uint32_t
        folded; /* so many library functions called by this one, a library's too, are in here */
};

struct calltree {
    struct call *calls;
    size_t count;
};

/* Heap contexts only. 0, or -1: out of memory. */
int calltree_top_down(struct calltree *tree, const struct report *report, enum metric metric);
/* Branches below options.min_percent and frames beyond options.depth are not expanded. */
int calltree_bottom_up(struct calltree *tree, const struct report *report, enum metric metric);
void calltree_free(struct calltree *tree);

/* Whether the system runs this before the program's own code: _start, clone and the like. */
bool calltree_is_startup(const struct names_frame *frame);

/* Whether the frame is plumbing of a language's library: std:: and the like, operator new. For
 * people a run of such frames is one line, that of the outermost: what their own code called. */
bool calltree_is_library(const struct names_frame *frame);

/* The path that ends in node `id`, innermost first, as people want to see it: from main on unless
 * options.all_frames. Step with calltree_walk_next(); frame is NULL at the end. */
struct calltree_walk {
    const struct report *report;
    const struct names_frame *frame;
    uint32_t node;
    size_t index;
    size_t steps; /* frames given so far */
    bool folds;
    size_t folded; /* library frames that the present one stands for, itself apart */
};
struct calltree_walk calltree_walk(const struct report *report, uint32_t id);
/* The same with runs of library frames folded, unless options.all_frames. */
struct calltree_walk calltree_walk_folded(const struct report *report, uint32_t id);
void calltree_walk_next(struct calltree_walk *walk);

#endif
