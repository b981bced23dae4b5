/* SPDX-License-Identifier: MIT */
/* variables.h: the MEMTRACE_* variables one by one: their names, what they take, what they set. */
#ifndef RUNTIME_ENTRY_VARIABLES_H
#define RUNTIME_ENTRY_VARIABLES_H

#include "runtime/record/region.h"

/* 0; -1: the value was not understood and nothing is changed; 1: no such variable. */
int variable_set(struct settings *settings, const char *name, const char *value);
/* The known name that is most like this one. */
const char *variable_nearest(const char *name);

#endif
