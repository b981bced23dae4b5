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

/* What a unit needs of the program's file, where its skeleton is. */
struct dwarfpackage_skeleton {
    uint64_t id;
    uint64_t base;         /* its ranges begin at this address where they say no other */
    const void *addresses; /* which it refers to by number */
    size_t addresses_size;
    const void *ranges; /* before DWARF 5 */
    size_t ranges_size;
};

/* The unit of a skeleton. 0 and its DIE, or -1: it is not there, or damaged, or there is no memory.
 */
int dwarfpackage_unit(const struct dwarfpackage *package,
                      const struct dwarfpackage_skeleton *skeleton, struct dwarfpiece *piece,
                      Dwarf_Die *die);
void dwarfpiece_free(struct dwarfpiece *piece);

#endif
