/* SPDX-License-Identifier: MIT */
/*
 * buildfolders.h: the folders in which a module was compiled, as its debug information names them.
 *
 * Called by web/server. Any thread.
 */
#ifndef ANALYZE_SYMBOL_BUILDFOLDERS_H
#define ANALYZE_SYMBOL_BUILDFOLDERS_H

#include "analyze/symbol/symbol.h"

#include <stdbool.h>

/* Calls take() for the folder of each unit, those that repeat each other directly once, until it
 * returns true, which is returned. folders as for debugfile_find(). */
bool buildfolders_visit(const struct symbol_module *module, const char *folders,
                        bool (*take)(void *context, const char *folder), void *context);

#endif
