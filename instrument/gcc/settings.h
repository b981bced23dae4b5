/* SPDX-License-Identifier: MIT */
/*
 * settings.h: what the user asked for: -fplugin-arg-memtrace-NAME=LIST and attributes. Read once by
 * plugin_init, asked by the passes.
 */
#ifndef INSTRUMENT_GCC_SETTINGS_H
#define INSTRUMENT_GCC_SETTINGS_H

#include "instrument/gcc/headers.h"

/* Takes the plugin's arguments; false after an error was printed. */
bool settings_read(const plugin_name_args *info);

/* Makes the attribute memtrace_no_alloc known. */
void settings_register_attributes();

/* The name the linker sees. */
std::string settings_symbol(tree function);

/* The user says that a call of `function` never allocates. */
bool settings_no_alloc(tree function);

/* Why the user wants `function` left alone; NULL: no reason. */
const char *settings_excluded(tree function);

#endif
