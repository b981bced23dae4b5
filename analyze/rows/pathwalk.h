/* SPDX-License-Identifier: MIT */
/*
 * pathwalk.h: the frames of one call path, innermost first, as people want to see them.
 *
 * Called by whoever shows call paths. Any thread, one at a time.
 */
#ifndef ANALYZE_ROWS_PATHWALK_H
#define ANALYZE_ROWS_PATHWALK_H

#include "analyze/rows/report.h"

/* Whether the system runs this before the program's own code: _start, clone and the like. */
bool pathwalk_is_startup(const struct names_frame *frame);

/* Whether it is in a C library without its debug file, which names no local function: not the one
 * that calls main(), nor the one that threads begin in. Outermost, or next to one that
 * pathwalk_is_startup(), such a frame is start-up code as well. */
bool pathwalk_is_unnamed_libc(const struct names_frame *frame);

bool pathwalk_is_main(const struct names_frame *frame);

/* Whether the frame is plumbing of a language's library: std:: and the like, operator new. For
 * people a run of such frames is one line, that of the outermost: what their own code called. */
bool pathwalk_is_library(const struct names_frame *frame);

/* The path that ends in node `id`, innermost first, as people want to see it: from main on unless
 * options.all_frames. Step with pathwalk_next(); frame is NULL at the end. */
struct pathwalk {
    const struct report *report;
    const struct names_frame *frame;
    uint32_t node;
    size_t index;
    size_t steps; /* frames given so far */
    bool folds;
    size_t folded; /* library frames that the present one stands for, itself apart */
};
struct pathwalk pathwalk(const struct report *report, uint32_t id);
/* The same with runs of library frames folded, unless options.all_frames. */
struct pathwalk pathwalk_folded(const struct report *report, uint32_t id);
void pathwalk_next(struct pathwalk *walk);

#endif
