/* SPDX-License-Identifier: MIT */
/*
 * modulefiles.h: the files of a recorded program's modules, held open from when a module is first
 * seen, so that they can be read at the end: where the program has removed them by then (libraries
 * that it unpacked), or saw them under names that mean other files here, or none (mount
 * namespaces).
 *
 * Called by collect/record, whose thread owns it. Descriptors of the same file are one in all
 * recordings of this command, and there are only so many.
 */
#ifndef COLLECT_MODULEFILES_H
#define COLLECT_MODULEFILES_H

#include "collect/claim.h"
#include "collect/recordfile.h"

struct modulefiles {
    struct modulefile **items; /* by the module's id; NULL: none is open */
    size_t count;
    uint32_t seen;  /* modules below this id were looked at */
    unsigned tries; /* since that was so */
};

/* Whether the program has modules that were not looked at yet, and still has them mapped. */
bool modulefiles_are_new(const struct modulefiles *files, const struct claim *claim);

/* Opens the files of modules that are new, as far as the profile knows them by now. */
void modulefiles_look(struct modulefiles *files, const struct claim *claim,
                      const struct profile *profile);

/* At the end of a recording: puts what names functions and lines, or whole program files, into it,
 * so that it can be read where those files are not. Writes FILE blocks for the modules of the
 * profile that call paths go through, from what is held where the program's file is not at its
 * path. A file that cannot be had or has another build-id is left out; one that is too large, too:
 * *left_out says how many (their paths may be long). 0, or -1: it could not be written. */
int modulefiles_embed(const struct modulefiles *held, const struct profile *profile,
                      enum memtrace_embed what, struct recordfile *file, uint64_t time_ns,
                      unsigned *left_out, struct error *error);

void modulefiles_close(struct modulefiles *files);

#endif
