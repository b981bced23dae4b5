/* SPDX-License-Identifier: MIT */
/*
 * symtab.h: function names of a module from its ELF symbol tables: .symtab and .dynsym of the file
 * and of its debug file, and the .symtab inside .gnu_debugdata.
 *
 * Used inside analyze/symbol. Filled by one thread, then only read.
 */
#ifndef ANALYZE_SYMBOL_SYMTAB_H
#define ANALYZE_SYMBOL_SYMTAB_H

#include "analyze/symbol/debugfile.h"
#include "analyze/symbol/rangetable.h"

/* Range values are the names, which lie in the files: these stay open as long as the table. */
struct symtab {
    struct rangetable functions;
    struct debugfile_elf files[2]; /* the module's own, and its debug file if that is another */
    Elf *embedded;                 /* of .gnu_debugdata, in embedded_bytes */
    void *embedded_bytes;
};

/* Reads what there is; a damaged table counts as absent. 0 or -1 (out of memory). */
int symtab_load(struct symtab *symtab, const struct debugfile_paths *paths);
/* The mangled name of the function that contains the address, or NULL. */
const char *symtab_name(const struct symtab *symtab, uint64_t address);
void symtab_free(struct symtab *symtab);

#endif
