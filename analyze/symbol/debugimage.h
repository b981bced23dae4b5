/* SPDX-License-Identifier: MIT */
/*
 * debugimage.h: the debug information of a file whose sections are compressed, unpacked into memory
 * once for all handles, by several threads. libdw would unpack everything, with one thread, once
 * for each handle.
 *
 * Used by modulesymbols.c and by collect/embed. Made by one thread, then only read.
 */
#ifndef ANALYZE_SYMBOL_DEBUGIMAGE_H
#define ANALYZE_SYMBOL_DEBUGIMAGE_H

#include <stdbool.h>
#include <stddef.h>

/* An ELF file in memory: the sections of another, in the same places, but only those have contents
 * that name functions and lines. bytes NULL: there is none. */
struct debugimage {
    char *bytes;
    size_t size;
};

/* Whether this section is debug information that tells where code is, not where variables are. */
bool debugimage_is_needed(const char *section);

/* Makes the image of the file; none if it needs none, or cannot be had (damage, no memory): the
 * file itself will do then. */
void debugimage_make(struct debugimage *image, const char *path, unsigned threads);
void debugimage_free(struct debugimage *image);

#endif
