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
    bool gcc; /* else Clang; GCC has plugins for C, C++, Fortran, Clang for its own languages */
    unsigned major;
    char file[PATH_MAX];
    char reason[PATH_MAX + 256]; /* a line for the user: which plugin it is, or why there is none */
};

/* Finds the plugin for a compiler below `folder`. `command` is what $CC may be, words of a shell:
 * "gcc-12", "ccache gcc -m32"; it is run, and tried with the plugin. False: there is none. */
bool plugin_find(struct plugin *plugin, const char *command, const char *folder);

#endif
