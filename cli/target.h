/* SPDX-License-Identifier: MIT */
/*
 * target.h: the program file that `memtrace run` is to start: where it is, and whether a preloaded
 * library gets into it; and that library, by a path that the loader takes.
 *
 * Called by cli/run.
 */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Finds `name` as execvp does: along $PATH, or as it is if it has a slash. 0, or the exit status of
 * a shell in that case: 127 (no such command) or 126 (there, but not executable). */
int target_find(const char *name, char path[PATH_MAX]);

/* NULL if a preloaded library gets in and what it writes can be read, or if that cannot be told;
 * else the reason as a phrase: "is statically linked". It stays until the next call. */
const char *target_obstacle(const char *path);

/* The same of a program for the machine with this e_machine, which an emulator runs. */
const char *target_obstacle_of(const char *path, unsigned machine);

/* Whether musl's loader loads this program, or the one that runs this script. */
bool target_is_of_musl(const char *path);

/* The library of this installation for that machine and C library. False: there is none. */
bool target_library(unsigned machine, bool is_musl, char path[PATH_MAX]);

/*
 * Finds the library beside this command, or the one that MEMTRACE_LIBRARY names: that for the C
 * library of this program (NULL: glibc). Sets `path` to
 * what may stand in LD_PRELOAD: the library itself or, where a folder's name has a character that
 * the loader does not take there (a blank, a colon, a dollar), the same file below a link to that
 * folder. 0, or CLI_FAILURE with the line printed.
 */
int preload_path(const char *program, char path[PATH_MAX]);

/* The same of this library. */
int preload_path_of(const char *library, char path[PATH_MAX]);

#endif
