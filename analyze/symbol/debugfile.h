/* SPDX-License-Identifier: MIT */
/*
 * debugfile.h: which files on this disk hold the symbols and the debug information of a module.
 *
 * Used inside analyze/symbol and by analyze/model/names. Any thread. A file counts only if its
 * build-id is the recorded one (or, with none recorded, that of the module's own file; or its
 * checksum is the .gnu_debuglink's).
 */
#ifndef ANALYZE_SYMBOL_DEBUGFILE_H
#define ANALYZE_SYMBOL_DEBUGFILE_H

#include "analyze/symbol/symbol.h"

#include <gelf.h>

/* An ELF file opened for reading; elf NULL: not open. The descriptor is already closed. */
struct debugfile_elf {
    Elf *elf;
    char *folder; /* where the file lies, for paths relative to it */
};

/* The files of one module. */
struct debugfile_paths {
    char *object;      /* the module's own file; NULL: gone, changed or never one */
    char *debug;       /* the file with its DWARF: the same or a separate one; NULL: none */
    char problem[512]; /* one line for the user; empty: none */
};

/* 0 or -1 (no ELF file, cannot be read). Descriptor: if not NULL it is kept open and handed out. */
int debugfile_open(const char *path, struct debugfile_elf *file, int *descriptor);
void debugfile_close(struct debugfile_elf *file);

/* The next section behind `section` (NULL: the first) whose header can be read, with its name, ""
 * if it has none. NULL: that was the last. */
Elf_Scn *debugfile_next_section(Elf *elf, Elf_Scn *section, GElf_Shdr *header, const char **name);

/* Calls visit() for each symbol of a table, up to one that cannot be read, or until it returns
 * another number than 0, which is returned. */
int debugfile_visit_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                            int (*visit)(void *context, const GElf_Sym *symbol, const char *name),
                            void *context);

/* Whether the file carries DWARF itself. */
bool debugfile_has_dwarf(Elf *elf);

/* Fills paths; what cannot be found stays NULL. 0 or -1 (out of memory). folders: colon-separated
 * roots. */
int debugfile_find(const struct symbol_module *module, const char *folders,
                   struct debugfile_paths *paths);
void debugfile_free(struct debugfile_paths *paths);

/* The file a .gnu_debugaltlink (dwz) names, seen from a debug file in `folder`: its path, to be
 * freed, or NULL. */
char *debugfile_find_alternate(const char *name, const void *build_id, size_t build_id_size,
                               const char *folder, const char *folders);

#endif
