/* SPDX-License-Identifier: MIT */
/*
 * embed.h: puts what names functions and lines, or whole program files, into a recording, so that
 * it can be read where those files are not.
 *
 * Called by collect/record at the end of a recording.
 */
#ifndef COLLECT_EMBED_H
#define COLLECT_EMBED_H

#include "analyze/read/profile.h"
#include "collect/modulefiles.h"
#include "collect/recordfile.h"

/* Writes FILE blocks for the modules of the profile that call paths go through, from `held` where
 * the program's file is not at its path. A file that cannot be had or has another build-id is left
 * out; one that is too large, too: *left_out says how many (their paths may be long). 0, or -1: it
 * could not be written. */
int embed_modules(const struct profile *profile, enum memtrace_embed what,
                  const struct modulefiles *held, struct recordfile *file, uint64_t time_ns,
                  unsigned *left_out, struct error *error);

#endif
