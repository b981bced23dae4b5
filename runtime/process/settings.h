/* SPDX-License-Identifier: MIT */
/* settings.h: the MEMTRACE_* environment. docs/environment.md lists the variables. */
#ifndef RUNTIME_PROCESS_SETTINGS_H
#define RUNTIME_PROCESS_SETTINGS_H

#include "runtime/record/region.h"

/* Whether an environment says that nothing is to be done. */
int settings_are_off(char *const environment[]);
/* Reads defaults linked into the program, then the environment. 1: on, 0: switched off. */
int settings_read(struct settings *settings, char **environment);
/* Takes out of the environment what `memtrace run` put there for us alone, and keeps it for
 * programs that are to be followed (exec_environment.h). Returns what `environ` is to be.
 * is_initial: the array is the one that the kernel made; what lies behind it stays in its place and
 * in reach. */
char **settings_clean_environment(char **environment, int is_initial);

/* --- variables.c: the variables one by one: their names, what they take, what they set ---------
 */

/* 0; -1: the value was not understood and nothing is changed; 1: no such variable. */
int variable_set(struct settings *settings, const char *name, const char *value);
/* The known name that is most like this one. */
const char *variable_nearest(const char *name);

#endif
