/* SPDX-License-Identifier: MIT */
/*
 * target.h: the program file that `memtrace run` is to start: where it is, and whether a preloaded
 * library gets into it.
 *
 * Called by cli/run.
 */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include <limits.h>
#include <stddef.h>

/* Finds `name` as execvp does: along $PATH, or as it is if it has a slash. 0, or the exit status of
 * a shell in that case: 127 (no such command) or 126 (there, but not executable). */
int target_find(const char *name, char path[PATH_MAX]);

/* NULL if a preloaded library gets in and what it writes can be read, or if that cannot be told;
 * else the reason as a phrase: "is statically linked". It stays until the next call. */
const char *target_obstacle(const char *path);

#endif
