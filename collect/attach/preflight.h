/* SPDX-License-Identifier: MIT */
/*
 * preflight.h: whether a program that runs can be attached to, found out without touching it. Each
 * "no" is one line that names the cure.
 *
 * Called by cli/attach.
 */
#ifndef COLLECT_ATTACH_PREFLIGHT_H
#define COLLECT_ATTACH_PREFLIGHT_H

#include "analyze/read/error.h"

#include <sys/types.h>

enum preflight_purpose { PREFLIGHT_ATTACH, PREFLIGHT_DETACH };

/* library: by its path, to be loaded. 0, or -1: error is "process 1 ...". */
int preflight_check(pid_t pid, enum preflight_purpose purpose, const char *library,
                    struct error *error);

/* Why a process of our own may not be traced, by the number in Yama's ptrace_scope; NULL: Yama has
 * nothing against it. */
const char *preflight_yama(int scope);

#endif
