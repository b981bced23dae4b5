/* SPDX-License-Identifier: MIT */
/*
 * below.h: opening what another root calls by a name: the files of a program in a container. Links
 * that lie there lead to no place outside of it, and nothing but folders and regular files is
 * opened, since to open another thing may do something.
 *
 * Called by whoever looks into a program that may be another user's. Any thread.
 */
#ifndef ANALYZE_BASE_BELOW_H
#define ANALYZE_BASE_BELOW_H

#include <sys/stat.h>

/* A descriptor of the folder; -1 with errno. */
int below_folder(const char *root, const char *path);
/* Of the regular file, by open's flags; *status is filled. -1 with errno. */
int below_open(const char *root, const char *path, int flags, struct stat *status);

#endif
