/* SPDX-License-Identifier: MIT */
/*
 * plugin.h: the plugin of MODE pass that serves a compiler. Called by cli/flags.
 *
 * A plugin serves one major version of one compiler: FOLDER/gcc-12/memtrace.so.
 */
#ifndef CLI_PLUGIN_H
#define CLI_PLUGIN_H

#include <limits.h>
#include <stdbool.h>

struct plugin {
    bool missing; /* the compiler's command is not there */
    bool gcc;     /* else Clang; GCC has plugins for C, C++, Fortran, Clang for its own languages */
    unsigned major;
    char file[PATH_MAX];
    char reason[PATH_MAX + 256]; /* a line for the user: which plugin it is, or why there is none */
};

/* Asks the compiler who it is: `command` is what $CC may be, words of a shell: "gcc-12",
 * "ccache gcc -m32"; it is run. False: neither GCC nor Clang, or missing. */
bool plugin_identify(struct plugin *plugin, const char *command);

/* Finds the plugin for this compiler, which was identified, below `folder`, and tries it. False:
 * there is none. */
bool plugin_find(struct plugin *plugin, const char *command, const char *folder);

#endif
