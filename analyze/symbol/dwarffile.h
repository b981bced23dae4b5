/* SPDX-License-Identifier: MIT */
/*
 * dwarffile.h: the debug information of a module: a libdw handle, the compilation units that were
 * asked for, with their functions, inlined calls and lines, names of functions, and symbol tables.
 *
 * Used inside analyze/symbol and by collect/allocators, in jobs: tables and units are memory of
 * those. libdw handles are not thread-safe: a handle, with its units, belongs to one thread at a
 * time, and several handles on one file may be used side by side.
 */
#ifndef ANALYZE_SYMBOL_DWARFFILE_H
#define ANALYZE_SYMBOL_DWARFFILE_H

#include "analyze/base/numbermap.h"
#include "analyze/symbol/debugfile.h"
#include "analyze/symbol/dwarfpackage.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Which address ranges contain this address? For compilation units, functions and symbols.
 * Filled once, sealed, then only read: a sealed table may be read by several threads ---- */

/* [low, high). Sealed: sorted by low, then wider first, then higher rank; reach is the greatest
 * high of this and every earlier range, so a walk backwards knows when to stop. */
struct range {
    uint64_t low;
    uint64_t high;
    uint64_t reach;
    uint64_t value;
    uint64_t rank; /* of two equal ranges the lower rank is found first */
};

/* All zero is empty and ready. */
struct rangetable {
    struct range *ranges;
    size_t count;
    size_t room;
};

/* Empty ranges are ignored. */
void rangetable_add(struct rangetable *table, uint64_t low, uint64_t high, uint64_t value,
                    uint64_t rank);
void rangetable_seal(struct rangetable *table);
/* The innermost range that contains the address, NULL: none; given a range it returned, the next
 * wider one. The table must be sealed. */
const struct range *rangetable_find(const struct rangetable *table, uint64_t address,
                                    const struct range *last);

/* ---- A file ---- */

struct dwarffile {
    struct debugfile_elf file;
    Elf *image;                          /* the file unpacked, if it is compressed; else NULL */
    struct debugfile_elf alternate_file; /* dwz: DIEs shared by several debug files */
    Dwarf *dwarf;
    Dwarf *alternate;
    struct numbermap units; /* offset of the unit's DIE -> struct dwarfunit */
    struct dwarfpackage package;
    char missing[256]; /* a .dwo file that was needed and is nowhere; empty: none so far */
};

/* `image`, if it has one, stands for the file's contents, and must outlive the handle.
 * 0, or -1: no usable DWARF. problem (at least 1 byte) gets one line for the user or "". */
int dwarffile_open(struct dwarffile *file, const char *path, const struct debugimage *image,
                   const char *folders, char *problem, size_t problem_size);
void dwarffile_close(struct dwarffile *file);

/* Adds the address ranges of all compilation units; values are offsets of their DIEs. Reads one
 * DIE a unit, so it is quick for large files, and does not depend on .debug_aranges, which clang
 * does not write. Whether some units are in .dwo files. The table is sealed then. */
bool dwarffile_index(struct dwarffile *file, struct rangetable *units);

/* Looks for the first unit that is in another file: who misses that misses all, and says so early.
 */
void dwarffile_try_split(struct dwarffile *file);

/* The unit at this offset; NULL: damaged. */
struct dwarfunit *dwarffile_unit(struct dwarffile *file, uint64_t offset);

/* ---- A unit: made once and kept ---- */

enum { DWARFUNIT_DEPTH = 128 }; /* inlined calls kept at one address; more are cut off outside */

struct dwarfunit {
    Dwarf_Die lines_die;     /* the unit itself: line table */
    Dwarf_Die die;           /* where its functions are: the same, or the unit in the .dwo file */
    struct dwarfpiece piece; /* of a package, if `die` is */
    const char *folder; /* where it was compiled: its relative paths start there; NULL: unknown */
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

/* The functions at the address: inlined ones from the innermost on, last the function they are
 * inlined into. Returns their number, 0: no function there. */
int dwarfunit_functions(struct dwarfunit *unit, uint64_t address,
                        Dwarf_Die functions[DWARFUNIT_DEPTH]);

/* The line of the address, as addr2line sees it (gdb may name the line of a neighbour, where a
 * debugger would rather stop). */
struct dwarfunit_place dwarfunit_line(struct dwarfunit *unit, uint64_t address);

/* The place of the call that was inlined (a DIE that dwarfunit_functions gave). */
struct dwarfunit_place dwarfunit_call(struct dwarfunit *unit, Dwarf_Die *inlined);

/* ---- Names of functions ---- */

/* The mangled name, or NULL: compilers leave it out for C, and g++ for functions that have no
 * symbol (static ones inlined everywhere, members of local classes). */
const char *dwarfname_linkage(Dwarf_Die *function);

/* The DIE where the function was first declared: the same for all its copies. */
Dwarf_Die dwarfname_declaration(Dwarf_Die *function);

/* Writes the name with its namespaces and classes ("deep::leaf") as gdb shows functions without
 * mangled name. Returns its length, 0: it has no name, or one that does not fit. */
size_t dwarfname_qualified(Dwarf_Die *declaration, char *name, size_t size);

/* ---- Symbol tables: .symtab and .dynsym of the file and of its debug file, and the .symtab inside
 * .gnu_debugdata. Filled by one thread, then only read ---- */

/* Range values are the names, which lie in the files: these stay open as long as the table. */
struct symtab {
    struct rangetable functions;
    struct debugfile_elf files[2]; /* the module's own, and its debug file if that is another */
    Elf *embedded;                 /* of .gnu_debugdata */
};

/* Reads what there is; a damaged table counts as absent. */
void symtab_load(struct symtab *symtab, const struct debugfile_paths *paths);
/* The mangled name of the function that contains the address, or NULL. */
const char *symtab_name(const struct symtab *symtab, uint64_t address);
/* Also one that was not loaded to its end; it is empty then. */
void symtab_close(struct symtab *symtab);

#endif
