/* SPDX-License-Identifier: MIT */
/*
 * patchcheck.h: whether a function can be led elsewhere by its first bytes, and called from there
 * as if nothing had happened. What cannot be known is refused.
 *
 * Called by allocators.c. A struct codefile belongs to one thread at a time.
 */
#ifndef COLLECT_ALLOCATORS_PATCHCHECK_H
#define COLLECT_ALLOCATORS_PATCHCHECK_H

#include "analyze/symbol/codefile.h"
#include "collect/allocators/patchmove.h"

struct patchsubject {
    struct codefile *code;
    uint64_t function; /* its first byte, in the file's terms */
    uint64_t size;     /* as its symbol has it; 0: unknown */
    uint64_t bias;     /* to the process's addresses */
    bool nests;        /* it is called from the runtime, not jumped to: arguments on the stack would
                          be elsewhere */
    bool is_claimed;   /* somebody named this very function (below) */
};

/*
 * Reads what can be moved, if all is well. 0, or -1: why.
 *
 * Where a function ends in a jump whose target cannot be known (through a register, into another
 * object), arguments that the target has on the stack are the function's own, and nothing in it
 * shows them. Who names a function with the numbers of its arguments, or made a set of it, has read
 * its declaration: more than six arguments would be there, and the specification has no way to say
 * them. So such a function is taken only where is_claimed. A pattern and --all claim nothing.
 */
int patchcheck_function(const struct patchsubject *subject, struct patchmove *move,
                        char why[PATCH_WHY]);

#endif
