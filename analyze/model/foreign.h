/* SPDX-License-Identifier: MIT */
/*
 * foreign.h: how much each thread freed of what each other thread allocated, added up.
 *
 * Called by analyze/model (accounts, sums, selectionthreads). Belongs to one thread. A program of
 * thousands of threads has millions of pairs, so a pair is found by its hash.
 */
#ifndef ANALYZE_MODEL_FOREIGN_H
#define ANALYZE_MODEL_FOREIGN_H

#include "analyze/base/numbermap.h"
#include "analyze/model/model.h"

/* All zero is empty and ready. */
struct foreign {
    struct model_foreign *pairs; /* each (freer, owner) once; blocks in the caller's units */
    size_t count;
    size_t capacity;
    struct numbermap places; /* of the pairs: their numbers from 1; empty after foreign_sort() */
};

void foreign_free(struct foreign *foreign);

/* 0, or -1: out of memory. */
int foreign_add(struct foreign *foreign, struct model_foreign more);

/* By freer, then by owner. */
void foreign_sort(struct foreign *foreign);

/* Empties it and keeps the room. */
void foreign_clear(struct foreign *foreign);

#endif
