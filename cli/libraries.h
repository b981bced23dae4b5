/* SPDX-License-Identifier: MIT */
/*
 * libraries.h: all libraries of this installation, for each machine and C library one, as the
 * runtime is told of them: it preloads what fits into the programs that the first one starts
 * (runtime/process/exec_environment.c reads it).
 *
 * Called by cli/run.
 */
#ifndef CLI_LIBRARIES_H
#define CLI_LIBRARIES_H

#include <stdbool.h>

/* The library that the user named, or that was found for the program: for this machine and C
 * library it comes in place of that of the installation. */
struct libraries_own {
    unsigned machine; /* e_machine */
    bool is_musl;
    const char *preload; /* as in LD_PRELOAD */
};

/* "x86_64=PATH:x86_64-musl=PATH:aarch64=PATH", this machine first. To be freed; NULL: out of
 * memory. */
char *libraries_text(const struct libraries_own *own);

#endif
