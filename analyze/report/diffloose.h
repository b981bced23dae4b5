/* SPDX-License-Identifier: MIT */
/*
 * diffloose.h: call paths that lack functions in one of two builds. An optimizer turns a last call
 * into a jump, and the caller's frame is gone; or it does not any more. Used by diffmatch.c for
 * leaves that found no partner.
 *
 * Two of them are one if they allocate in the same function, begin in the same one, and all
 * functions of one stand in the other in the same order. The nearest in length is taken.
 */
#ifndef ANALYZE_REPORT_DIFFLOOSE_H
#define ANALYZE_REPORT_DIFFLOOSE_H

#include "analyze/report/difftree.h"

/* Leaves of one tree. All zero is empty. */
struct diffloose {
    uint32_t *leaves;
    size_t count;
    size_t capacity;
};

/* 0, or -1: out of memory. */
int diffloose_add(struct diffloose *loose, uint32_t leaf);
void diffloose_free(struct diffloose *loose);

/* Calls back for each pair of one leaf of each list, DIFFMATCH_NONE where it has no partner, until
 * that does not return 0. Sorts the lists. 0, or that value. */
int diffloose_match(const struct difftree trees[2], struct diffloose loose[2],
                    int (*pair)(void *context, uint32_t left, uint32_t right), void *context);

#endif
