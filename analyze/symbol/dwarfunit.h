/* SPDX-License-Identifier: MIT */
/*
 * dwarfunit.h: one compilation unit of a DWARF handle: its functions, inlined calls and lines.
 *
 * Used inside analyze/symbol, by the thread that has the handle. Made once per unit and kept:
 * only units that an address was asked for are ever read.
 */
#ifndef ANALYZE_SYMBOL_DWARFUNIT_H
#define ANALYZE_SYMBOL_DWARFUNIT_H

#include "analyze/symbol/rangetable.h"

#include <elfutils/libdw.h>
#include <stdbool.h>

enum { DWARFUNIT_DEPTH = 128 }; /* inlined calls kept at one address; more are cut off outside */

struct dwarfunit {
    Dwarf_Die lines_die; /* the unit itself: line table */
    Dwarf_Die die;       /* where its functions are: the same, or the unit in the .dwo file */
    const char *folder;  /* where it was compiled: its relative paths start there; NULL: unknown */
    struct rangetable functions; /* values are indices of `dies` */
    Dwarf_Die *dies;
    size_t die_count;
    size_t die_room;
    bool all; /* functions inside classes and functions are in the table too */
};

/* A place in a source file. file NULL: unknown. */
struct dwarfunit_place {
    const char *file;
    unsigned line;
    unsigned column;
};

/* 0 or -1 (out of memory). `die` is the unit's DIE. */
int dwarfunit_load(struct dwarfunit *unit, Dwarf_Die *die);
void dwarfunit_free(struct dwarfunit *unit);

/* The functions at the address: inlined ones from the innermost on, last the function they are
 * inlined into. Returns their number, 0: no function there, -1: out of memory. */
int dwarfunit_functions(struct dwarfunit *unit, uint64_t address,
                        Dwarf_Die functions[DWARFUNIT_DEPTH]);

/* The line of the address, as addr2line sees it (gdb may name the line of a neighbour, where a
 * debugger would rather stop). */
struct dwarfunit_place dwarfunit_line(struct dwarfunit *unit, uint64_t address);

/* The place of the call that was inlined (a DIE that dwarfunit_functions gave). */
struct dwarfunit_place dwarfunit_call(struct dwarfunit *unit, Dwarf_Die *inlined);

#endif
