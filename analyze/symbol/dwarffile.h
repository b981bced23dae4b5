/* SPDX-License-Identifier: MIT */
/*
 * dwarffile.h: one libdw handle on the debug information of a module.
 *
 * Used inside analyze/symbol. libdw handles are not thread-safe: a handle belongs to one thread at
 * a time, and several handles on one file may be used side by side.
 */
#ifndef ANALYZE_SYMBOL_DWARFFILE_H
#define ANALYZE_SYMBOL_DWARFFILE_H

#include "analyze/base/numbermap.h"
#include "analyze/symbol/debugfile.h"
#include "analyze/symbol/debugimage.h"
#include "analyze/symbol/dwarfunit.h"

struct dwarffile {
    struct debugfile_elf file;
    Elf *image;                          /* the file unpacked, if it is compressed; else NULL */
    struct debugfile_elf alternate_file; /* dwz: DIEs shared by several debug files */
    Dwarf *dwarf;
    Dwarf *alternate;
    struct numbermap units; /* offset of the unit's DIE -> struct dwarfunit */
};

/* `image`, if it has one, stands for the file's contents, and must outlive the handle.
 * 0, or -1: no usable DWARF. problem (at least 1 byte) gets one line for the user or "". */
int dwarffile_open(struct dwarffile *file, const char *path, const struct debugimage *image,
                   const char *folders, char *problem, size_t problem_size);
void dwarffile_close(struct dwarffile *file);

/* Adds the address ranges of all compilation units; values are offsets of their DIEs. Reads one
 * DIE a unit, so it is quick for large files, and does not depend on .debug_aranges, which clang
 * does not write. *split: some units are in .dwo files. 0 or -1 (out of memory). The table is
 * sealed then. */
int dwarffile_index(struct dwarffile *file, struct rangetable *units, bool *split);

/* The unit at this offset; NULL: damaged or out of memory. */
struct dwarfunit *dwarffile_unit(struct dwarffile *file, uint64_t offset);

#endif
