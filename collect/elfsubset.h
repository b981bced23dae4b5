/* SPDX-License-Identifier: MIT */
/*
 * elfsubset.h: makes an ELF file that names functions and lines as another one does, without its
 * code and data.
 *
 * Called by collect/embed. Any thread.
 */
#ifndef COLLECT_ELFSUBSET_H
#define COLLECT_ELFSUBSET_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Fills *bytes and *size (free() it) with a file that has all sections of `from` at their addresses
 * and its build-id; only symbol tables, with_debug: and debug information, have contents. 0, or -1:
 * not an ELF file that can be copied, or no memory.
 */
int elfsubset_make(Elf *from, bool with_debug, unsigned char **bytes, size_t *size);

#endif
