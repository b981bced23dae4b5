/* SPDX-License-Identifier: MIT */
/*
 * sourceinfo.h: what the debug information of a module says of its sources: the folders in which it
 * was compiled, and whether the text of a file is what was compiled.
 *
 * Called by web/server. Any thread. Folders of debug files are as for debugfile_find(); NULL:
 * /usr/lib/debug.
 */
#ifndef ANALYZE_SYMBOL_SOURCEINFO_H
#define ANALYZE_SYMBOL_SOURCEINFO_H

#include "analyze/symbol/symbol.h"

enum sourceinfo_hash {
    SOURCEINFO_UNKNOWN, /* there is none of this file, or nothing could be read */
    SOURCEINFO_SAME,    /* as some unit of the module was compiled from */
    SOURCEINFO_OTHER
};

/* DWARF 5's line tables may have the MD5 of each file (clang writes it, gcc does not). `file` as
 * frames of the module name it. */
enum sourceinfo_hash sourceinfo_compare(const struct symbol_module *module, const char *folders,
                                        const char *file, const void *text, size_t size);

/* Calls take() for the folder of each unit, those that repeat each other directly once, until it
 * returns true, which is returned. */
bool sourceinfo_visit_folders(const struct symbol_module *module, const char *folders,
                              bool (*take)(void *context, const char *folder), void *context);

#endif
