/* SPDX-License-Identifier: MIT */
/*
 * roles.h: what a function is in a call path, by its name and file alone. Found once for each frame
 * that has a name (struct names_frame): paths are walked far more often.
 *
 * Any thread.
 */
#ifndef ANALYZE_MODEL_ROLES_H
#define ANALYZE_MODEL_ROLES_H

/* Any number of them. */
enum {
    ROLES_MAIN = 1 << 0,
    ROLES_STARTUP = 1 << 1, /* what the system runs before the program's own code */
    ROLES_LIBRARY = 1 << 2, /* plumbing of a language's library: std:: and the like, operator new */
};

/* function: demangled. NULL: unknown, as the file may be. */
unsigned char roles_of(const char *function, const char *file);

#endif
