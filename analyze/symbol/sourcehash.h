/* SPDX-License-Identifier: MIT */
/*
 * sourcehash.h: whether the text of a source file is what was compiled: DWARF 5's line tables may
 * have the MD5 of each file (clang writes it, gcc does not).
 *
 * libdw reads over the hashes, so that this reads the heads of line tables itself. Called by
 * web/server. Any thread.
 */
#ifndef ANALYZE_SYMBOL_SOURCEHASH_H
#define ANALYZE_SYMBOL_SOURCEHASH_H

#include "analyze/symbol/symbol.h"

enum sourcehash {
    SOURCEHASH_UNKNOWN, /* there is none of this file, or nothing could be read */
    SOURCEHASH_SAME,    /* as some unit of the module was compiled from */
    SOURCEHASH_OTHER
};

/* `file` as frames of the module name it; folders as for debugfile_find(). */
enum sourcehash sourcehash_compare(const struct symbol_module *module, const char *folders,
                                   const char *file, const void *text, size_t size);

#endif
