/* SPDX-License-Identifier: MIT */
/*
 * ownfolder.h: where this command lies, from where the rest of its installation is found.
 *
 * Called by cli/target, flags and emulated.
 */
#ifndef CLI_OWNFOLDER_H
#define CLI_OWNFOLDER_H

#include <limits.h>
#include <stdbool.h>

/* The folder of the command. False: it cannot be told (/proc is not mounted), and is empty. */
bool ownfolder_find(char folder[PATH_MAX]);
/* One line that says so. CLI_FAILURE. */
int ownfolder_refuse(void);

#endif
