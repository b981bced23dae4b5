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

struct modulefiles {
    struct modulefile **items; /* by the module's id; NULL: none is open */
    size_t count;
    uint32_t seen;  /* modules below this id were looked at */
    unsigned tries; /* since that was so */
};

enum { MODULEFILES_PATH = 40 };

/* Whether the program has modules that were not looked at yet, and still has them mapped. */
bool modulefiles_are_new(const struct modulefiles *files, const struct claim *claim);

/* Opens the files of modules that are new, as far as the profile knows them by now. */
void modulefiles_look(struct modulefiles *files, const struct claim *claim,
                      const struct profile *profile);

/* A path on which this process can open the module's file. false: none is held. */
bool modulefiles_path(const struct modulefiles *files, uint64_t module,
                      char path[MODULEFILES_PATH]);

void modulefiles_close(struct modulefiles *files);

#endif
