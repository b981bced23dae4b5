/* SPDX-License-Identifier: MIT */
/* execute.h: becoming another program, as a shell does. Called by cli/child and cli/launch. */
#ifndef CLI_EXECUTE_H
#define CLI_EXECUTE_H

/* Runs `path` in place of this process, with our environment; a script without "#!" by /bin/sh.
 * Returns only if that failed: the errno of it. */
int execute_program(const char *path, char **argv);
/* The exit status of a shell for such an errno: 127 (not there) or 126. */
int execute_status(int reason);

#endif
