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

#endif
