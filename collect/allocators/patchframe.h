/* SPDX-License-Identifier: MIT */
/*
 * patchframe.h: whether an instruction has to do with what lies on the stack above its function's
 * own frame: the return address, and arguments behind it. By unwind tables.
 *
 * Called by patchcheck.c. One for each walk through a function.
 */
#ifndef COLLECT_ALLOCATORS_PATCHFRAME_H
#define COLLECT_ALLOCATORS_PATCHFRAME_H

#include "analyze/symbol/codefile.h"
#include "collect/allocators/patchmove.h"

struct patchframe {
    const struct codefile *code;
    uint64_t low, high; /* for these instructions the CFA is register + offset */
    int reg;            /* DWARF's number; -1: another rule */
    int64_t offset;
};

enum patchframe_use {
    PATCHFRAME_NOTHING,
    PATCHFRAME_ARGUMENTS,
    PATCHFRAME_RETURN,
    PATCHFRAME_UNKNOWN
};

enum patchframe_use patchframe_use(struct patchframe *frame, const struct patchcode *code,
                                   uint64_t address);

#endif
