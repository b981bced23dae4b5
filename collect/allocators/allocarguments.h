/* SPDX-License-Identifier: MIT */
/*
 * allocarguments.h: whether a function's arguments are what a specification says, as far as its
 * debug information tells.
 *
 * Called by allocators.c. Belongs to one thread.
 */
#ifndef COLLECT_ALLOCATORS_ALLOCARGUMENTS_H
#define COLLECT_ALLOCATORS_ALLOCARGUMENTS_H

#include "analyze/base/job.h"
#include "analyze/symbol/dwarffile.h"
#include "collect/allocators/allocspec.h"

#include <stdbool.h>

/* The debug information of an object, opened when it is first asked. All zero is ready. */
struct allocarguments {
    bool is_looked_for, is_there;
    struct dwarffile file;
    struct rangetable units;
    struct job_memory *memory;
    bool has_failed; /* for want of memory: nothing more is known */
};

enum { ALLOCARGUMENTS_WHY = 160 };

/* `path` is the file with the DWARF, NULL: there is none. `function` in the file's terms. 0: they
 * fit, or it is not known; -1: they do not, and why. */
int allocarguments_check(struct allocarguments *arguments, const char *path, uint64_t function,
                         const struct allocspec *spec, char why[ALLOCARGUMENTS_WHY]);
void allocarguments_close(struct allocarguments *arguments);

#endif
