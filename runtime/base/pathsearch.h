/* SPDX-License-Identifier: MIT */
/*
 * pathsearch.h: the program of a name in a list of folders, as $PATH is one.
 *
 * Called by entry/exec_environment and record/companion. Any thread, handlers and forked children
 * too: no allocation, no lock.
 */
#ifndef RUNTIME_BASE_PATHSEARCH_H
#define RUNTIME_BASE_PATHSEARCH_H

#include <stddef.h>

/* What an empty folder is: passed over, or the present folder, as execvp() takes it. */
enum pathsearch_empty { PATHSEARCH_SKIP_EMPTY, PATHSEARCH_TAKE_EMPTY };

/* Sets `path` to the first that can be executed. folders: separated by colons; NULL: none. 1, or 0:
 * there is none. */
int pathsearch_find(const char *folders, enum pathsearch_empty empty, const char *name, char *path,
                    size_t capacity);

#endif
