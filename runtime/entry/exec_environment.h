/* SPDX-License-Identifier: MIT */
/*
 * exec_environment.h: the environment that a program gets from an exec or a spawn of ours.
 *
 * The program under us sees none of our variables: they are taken out before its main. Where
 * children are followed they are put back here, into a copy of what it hands to exec, unless the
 * new program could not run with them (its loader is not ours, or a sanitizer must come first).
 */
#ifndef RUNTIME_ENTRY_EXEC_ENVIRONMENT_H
#define RUNTIME_ENTRY_EXEC_ENVIRONMENT_H

#include <stddef.h>

/* Keeps a variable, "NAME=value", that is about to be taken out: `length` bytes of it are ours.
 * At start only. */
void exec_keep(const char *entry, size_t length);

/* Whether our variables are to be put back for this program. `by_name`: it is looked for in $PATH,
 * as execvp does; NULL: not known. `replaces`: the process itself becomes it. Signal-safe, and safe
 * in a child of vfork, as are the next two: nothing is written to the program's memory. */
int exec_follows(const char *program, int by_name, int replaces);

/* How many places the new array needs, its NULL included. */
size_t exec_places(char *const envp[], int follows);

/* Fills the caller's array; `preload` is for the text of one variable. Returns what to give to
 * exec: envp itself where nothing is to be done. */
enum { EXEC_PRELOAD_SIZE = 4096 };
char *const *exec_environment(char *const envp[], int follows, char **places,
                              char preload[EXEC_PRELOAD_SIZE]);

/* Around calls of libc that start a shell and take `environ` for it: system and popen. Threads may
 * be inside at the same time; what they do to the environment meanwhile stays. */
void exec_lend_environment(void);
void exec_take_environment_back(void);

/* --- exec_target.c: whether a program can run with our library preloaded -----------------------
 */

/* 0: with our library its loader would end it or complain: it has another C library (PT_INTERP),
 * another word size or machine, or a sanitizer that must be loaded first. 1: it can, or that cannot
 * be told. Signal-safe, allocates nothing. */
int exec_target_takes_preload(const char *path);

#endif
