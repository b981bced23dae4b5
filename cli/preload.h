/* SPDX-License-Identifier: MIT */
/*
 * preload.h: the library that `memtrace run` puts into a program, by a path that the loader takes.
 *
 * Called by cli/launch.
 */
#ifndef CLI_PRELOAD_H
#define CLI_PRELOAD_H

#include <limits.h>

/*
 * Finds the library beside this command, or the one that MEMTRACE_LIBRARY names. Sets `path` to
 * what may stand in LD_PRELOAD: the library itself or, where a folder's name has a character that
 * the loader does not take there (a blank, a colon, a dollar), the same file below a link to that
 * folder. 0, or CLI_FAILURE with the line printed.
 */
int preload_path(char path[PATH_MAX]);

#endif
