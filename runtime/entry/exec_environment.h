/* SPDX-License-Identifier: MIT */
/*
 * exec_environment.h: the environment that a program gets from an exec or a spawn of ours.
 *
 * With MEMTRACE_CHILDREN=all our variables are there anyway, and are taken out where the new
 * program could not run with them (its loader is not ours, or a sanitizer must come first). With
 * "exec" they are put back for whatever the first process of a run becomes. Works on the caller's
 * stack, since it is also called in children of vfork: nothing is written to the program's memory.
 */
#ifndef RUNTIME_ENTRY_EXEC_ENVIRONMENT_H
#define RUNTIME_ENTRY_EXEC_ENVIRONMENT_H

#include "runtime/record/region.h"

#include <stddef.h>

enum exec_change {
    EXEC_AS_IS = 0,
    EXEC_ADD,  /* what settings_clean_environment() took out comes back */
    EXEC_DROP, /* our library is not preloaded */
};

/* What has to be done for this program; `by_name`: it is looked for in $PATH as execvp does.
 * `replaces`: the process itself becomes it. NULL: not known, as it is. Signal-safe. */
enum exec_change exec_change(const char *program, int by_name, int replaces);

/* How many places the new array needs, its NULL included. */
size_t exec_places(char *const envp[], enum exec_change change);

/* Fills the array; `preload` is for the text of one variable. Returns what to give to exec. */
enum { EXEC_PRELOAD_SIZE = 4096 };
char *const *exec_environment(char *const envp[], enum exec_change change, char **places,
                              char preload[EXEC_PRELOAD_SIZE]);

/* Keeps a variable, "NAME=value", that is about to be taken out; `value`: the part that is ours. */
void exec_keep(const char *entry, size_t length);

#endif
