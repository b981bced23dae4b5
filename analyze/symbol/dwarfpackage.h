/* SPDX-License-Identifier: MIT */
/*
 * dwarfpackage.h: .dwp files, in which a linker or llvm-dwp has put the .dwo files of a program.
 * libdw reads .dwo files alone: a unit of a package is handed to it as one, made in memory.
 *
 * Used by dwarffile, one thread at a time. Nothing in a package is trusted.
 */
#ifndef ANALYZE_SYMBOL_DWARFPACKAGE_H
#define ANALYZE_SYMBOL_DWARFPACKAGE_H

#include "analyze/symbol/debugfile.h"

#include <elfutils/libdw.h>

struct dwarfpackage {
    struct debugfile_elf file; /* elf NULL: there is none */
};

/* The package beside the file: FILE.dwp. */
void dwarfpackage_open(struct dwarfpackage *package, const char *path);
void dwarfpackage_close(struct dwarfpackage *package);

/* A unit of it. */
struct dwarfpiece {
    Dwarf *dwarf; /* NULL: none */
    Elf *elf;
    void *bytes;
};

/* The unit of a skeleton, by its id, whose addresses are addresses[0 .. addresses_size) bytes. 0
 * and its DIE, or -1: it is not there, or damaged, or there is no memory. */
int dwarfpackage_unit(const struct dwarfpackage *package, uint64_t id, const void *addresses,
                      size_t addresses_size, struct dwarfpiece *piece, Dwarf_Die *die);
void dwarfpiece_free(struct dwarfpiece *piece);

#endif
