/* SPDX-License-Identifier: MIT */
/*
 * dwarfname.h: names of functions from their DIEs.
 *
 * Used inside analyze/symbol, by the thread that has the handle.
 */
#ifndef ANALYZE_SYMBOL_DWARFNAME_H
#define ANALYZE_SYMBOL_DWARFNAME_H

#include <elfutils/libdw.h>

/* The mangled name, or NULL: compilers leave it out for C, and g++ for functions that have no
 * symbol (static ones inlined everywhere, members of local classes). */
const char *dwarfname_linkage(Dwarf_Die *function);

/* The DIE where the function was first declared: the same for all its copies. */
Dwarf_Die dwarfname_declaration(Dwarf_Die *function);

/* Writes the name with its namespaces and classes ("deep::leaf") as gdb shows functions without
 * mangled name. Returns its length, 0: it has no name, or one that does not fit. */
size_t dwarfname_qualified(Dwarf_Die *declaration, char *name, size_t size);

#endif
