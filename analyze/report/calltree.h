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

#include "analyze/report/reports.h"
#include "analyze/rows/pathwalk.h"

struct call {
    const struct names_frame *frame; /* NULL: the root */
    uint64_t id; /* of the functions (by line: places) from the root to here: the same in the trees
                    of all costs and windows of a model, other than its index. The root's is 0 */
    struct cost cost; /* of all paths through here */
    struct cost self; /* of the paths that end here */
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
    struct call *calls; /* of the job in which it was begun */
    size_t count;
    size_t room;
};

/* Only a root. */
struct calltree calltree_begin(void);
/* Room for so many calls more. */
void calltree_reserve(struct calltree *tree, size_t count);

/* Heap contexts only. */
struct calltree calltree_top_down(const struct report *report, enum metric metric);
/* Branches below options.min_percent and frames beyond options.depth are not expanded. */
struct calltree calltree_bottom_up(const struct report *report, enum metric metric);
/*
 * Around some functions: who calls them, whose root's callees are their callers, and so on out to
 * main, and what they call. A path counts once, however often it goes through them: its callers
 * stand outside of the outermost, its callees inside of the innermost. So each root's cost is that
 * of the functions; self of the callees' root is what they allocate themselves, self of the
 * callers' what nobody called. The roots' frame is one of the functions', NULL where no path goes
 * through them. Paths are options.depth frames deep; library functions are not folded.
 */
void calltree_around(struct calltree *callers, struct calltree *callees,
                     const struct report *report, enum metric metric, const struct callers_of *of);
/* What tells functions apart, by line places; and the id of a call of this frame by `parent`. */
uint64_t calltree_key(const struct report *report, const struct names_frame *frame);
uint64_t calltree_id(const struct report *report, const struct call *parent,
                     const struct names_frame *frame);
/* This line, too, is of those from *first to *last; 0: it is not known. */
static inline void calltree_note_line(uint32_t *first, uint32_t *last, uint32_t line) {
    *first = line != 0 && (*first == 0 || line < *first) ? line : *first;
    *last = line > *last ? line : *last;
}
/* The dearest callee of each call first. */
void calltree_sort(struct calltree *tree);

#endif
