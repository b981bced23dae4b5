/* SPDX-License-Identifier: MIT */
/*
 * lsanoptions.h: the suppressions that a program carries for LeakSanitizer: what its function
 * __lsan_default_suppressions() returns, read from the file, without running it.
 *
 * Called by analyze/model/suppressions. Where the program defines that function, all constant texts
 * of its file are taken that are nothing but such lists (lines "leak:PATTERN", comments, empty
 * lines). One that is put together at run time is not seen; --suppressions names a file then. The
 * program must be on this machine, unchanged.
 */
#ifndef ANALYZE_SYMBOL_LSANOPTIONS_H
#define ANALYZE_SYMBOL_LSANOPTIONS_H

#include "analyze/symbol/symbol.h"

/* The caller frees the text. NULL: there is none, or it cannot be found. debug_folders may be NULL
 * (as for the symbolizer). */
char *lsanoptions_suppressions(const struct symbol_module *module, const char *debug_folders);

#endif
