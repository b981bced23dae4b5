/* SPDX-License-Identifier: MIT */
/*
 * onefilesums.h: what call paths cost, for a page that is saved: from this the page makes its
 * trees, functions, files and lines itself (web/ui/src/sums.ts).
 *
 * Called by onefile.c, by dispatch_of_view().
 */
#ifndef WEB_SERVER_ONEFILESUMS_H
#define WEB_SERVER_ONEFILESUMS_H

#include "web/server/api.h"

/*
 * The dearest `limit` call paths, what they cost in columns, by path:
 *   cells   {column of /paths: values}, `leaked`: [bytes, blocks] where suppressions change them
 *   ends    where the path ends in nodes
 *   nodes   {depth, frame}: the call paths as a tree, each node behind its caller
 *   frames, functions   what nodes name; by frame which function it is
 *   left_out, rests     the paths that are not here; the last so many stand for them: each for
 * those that are alike up to there, so that sums are of all
 */
void onefilesums(struct api_call *call);

#endif
