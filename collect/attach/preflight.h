/* SPDX-License-Identifier: MIT */
/*
 * preflight.h: whether a program that runs can be attached to, found out without touching it. Each
 * "no" is one line that names the cure.
 *
 * Called by cli/attach.
 */
#ifndef COLLECT_ATTACH_PREFLIGHT_H
#define COLLECT_ATTACH_PREFLIGHT_H

#include "analyze/base/error.h"
#include "collect/attach/attachfilters.h"
#include "collect/attach/attachtarget.h"

#include <stdbool.h>
#include <sys/types.h>

enum preflight_purpose { PREFLIGHT_ATTACH, PREFLIGHT_DETACH, PREFLIGHT_CENSUS };

/* What was found out besides. */
struct preflight {
    bool is_hidden;  /* the program cannot open the library */
    bool is_outside; /* it counts processes, or sees files, otherwise, or is another user's: we are
                        the ones who write its profile */
    struct attachfilters filters;
};

/* library: by its path, to be loaded. is_forced: also where its filters cannot be read. 0, or -1:
 * error is "process 1 ...". In both cases preflight_free. */
int preflight_check(const struct attachimage *image, enum preflight_purpose purpose,
                    const char *library, bool is_forced, struct preflight *found,
                    struct error *error);
void preflight_free(struct preflight *found);

/* Why a process of our own may not be traced, by the number in Yama's ptrace_scope; NULL: Yama has
 * nothing against it. */
const char *preflight_yama(int scope);

#endif
