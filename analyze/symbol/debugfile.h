/* SPDX-License-Identifier: MIT */
/*
 * debugfile.h: which files on this disk hold the symbols and the debug information of a module.
 *
 * Used inside analyze/symbol, by analyze/model/names and collect/modulefiles. Any thread. A file
 * counts only if its build-id is the recorded one (or, with none recorded, that of the module's own
 * file; or its checksum is the .gnu_debuglink's).
 */
#ifndef ANALYZE_SYMBOL_DEBUGFILE_H
#define ANALYZE_SYMBOL_DEBUGFILE_H

#include "analyze/symbol/symbolmodule.h"

#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* An ELF file opened for reading; elf NULL: not open. The descriptor is already closed. */
struct debugfile_elf {
    Elf *elf;
    void *bytes;  /* of the file, as libelf mapped it */
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

/* What the first section of this name holds as it is in the file. NULL: there is none, or it is
 * compressed or empty. */
Elf_Data *debugfile_section(Elf *elf, const char *wanted);

/* Calls visit() for each symbol of a table, up to one that cannot be read, or until it returns
 * another number than 0, which is returned. */
int debugfile_visit_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                            int (*visit)(void *context, const GElf_Sym *symbol, const char *name),
                            void *context);

/* The file's build-id, in *bytes, and its size; 0: it has none. The bytes live as long as the Elf.
 */
ssize_t debugfile_build_id(Elf *elf, const void **bytes);

/* Whether the file carries DWARF itself. */
bool debugfile_has_dwarf(Elf *elf);

/* Files are looked for below this folder first: that of a program which sees others by their names.
 * Empty: no more. To be said before names are asked for. */
void debugfile_set_root(const char *root);

/* And before that below these, which the user named (colon-separated; NULL: none any more): copies
 * of another machine's files, by their paths there or just by their names. Debug files, too, lie in
 * their usr/lib/debug. To be said before names are asked for; the text stays the caller's. */
void debugfile_set_copies(const char *folders);
bool debugfile_has_copies(void);

/* Where the file with this path on the program's machine is here, as far as paths tell: whatever
 * build it is. False: the path does not fit. */
bool debugfile_locate(const char *path, char found[PATH_MAX]);

/* Fills paths; what cannot be found stays NULL. 0 or -1 (out of memory). folders: colon-separated
 * roots; NULL: /usr/lib/debug. */
int debugfile_find(const struct symbol_module *module, const char *folders,
                   struct debugfile_paths *paths);
void debugfile_free(struct debugfile_paths *paths);

/* Where no file with DWARF was found: asks debuginfod servers for one, if a command allowed that.
 */
void debugfile_fetch(const struct symbol_module *module, struct debugfile_paths *paths);

/* The file a .gnu_debugaltlink (dwz) names, seen from a debug file in `folder`: its path, to be
 * freed, or NULL. */
char *debugfile_find_alternate(const char *name, const void *build_id, size_t build_id_size,
                               const char *folder, const char *folders);

/* ---- The debug information of a file whose sections are compressed, unpacked into memory once for
 * all handles, by several threads. libdw would unpack everything, with one thread, once for each
 * handle. Made by one thread, then only read ---- */

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
