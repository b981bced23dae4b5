/* SPDX-License-Identifier: MIT */
/*
 * framekind.h: whose code a frame is: the program's own, a language's library or the system's.
 *
 * Called by whoever colours frames, or names the line to blame. Any thread.
 */
#ifndef ANALYZE_ROWS_FRAMEKIND_H
#define ANALYZE_ROWS_FRAMEKIND_H

#include "analyze/rows/pathwalk.h"

enum framekind {
    FRAMEKIND_OWN,     /* the program's file, libraries beside it, and whatever is none of these: */
    FRAMEKIND_LIBRARY, /* std:: and the like, C++'s library, headers of the system's, functions
                          named as malloc and its kin are, whosever they are */
    FRAMEKIND_SYSTEM,  /* libraries in the system's folders, what runs before main */
};

/* executable: the program's path, as in the model's header. */
enum framekind framekind_of(const struct names_frame *frame, const char *executable);
/* Of the file that the frame's code lies in, whatever its function is called. */
enum framekind framekind_of_file(const struct names_frame *frame, const char *executable);

/* The line to blame for a call path, from where the walk stands: the innermost line of the
 * program's own code, else the innermost of its functions, else the innermost of all. NULL: no
 * frame is left. */
const struct names_frame *framekind_blame(struct pathwalk walk);

/* "own", "library" or "system" */
const char *framekind_name(enum framekind kind);

#endif
