/* SPDX-License-Identifier: MIT */
/*
 * codefile.h: the code of an ELF file: its bytes, which functions there are by symbols, where they
 * begin and end by unwind tables, and where jumps and calls lead.
 *
 * Called by collect/allocators. A struct codefile belongs to one thread at a time. All addresses
 * are the file's own (st_value).
 */
#ifndef ANALYZE_SYMBOL_CODEFILE_H
#define ANALYZE_SYMBOL_CODEFILE_H

#include "analyze/base/error.h"
#include "analyze/symbol/debugfile.h"

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CODEFILE_SEGMENTS = 16 };

struct codefile_symbol {
    uint64_t address;
    uint64_t size;    /* 0: unknown */
    const char *name; /* as in the file; of what has no symbol there: its address, "0x1a2b" */
    bool is_unnamed;  /* it has none: it is known by unwind tables */
    bool is_chosen_at_start; /* STT_GNU_IFUNC: it returns the function's address */
    bool is_typed;           /* the file says that it is a function */
};

struct codefile_range {
    uint64_t low, high;
};

/* A word to which the loader writes the address of a function of this file. */
struct codefile_word {
    uint64_t address, target;
};

/* Loaded bytes of the file. */
struct codefile_segment {
    uint64_t address, size;
    uint64_t offset; /* in the file */
    const uint8_t *bytes;
    bool is_code;
};

struct codefile {
    struct debugfile_paths paths;
    struct debugfile_elf files[2];   /* the file, its separate debug file */
    struct codefile_symbol *symbols; /* of functions, by address, then by name */
    size_t symbol_count, symbol_room;
    char (*unnamed)[20];           /* names of those that have none */
    struct codefile_range *frames; /* by .eh_frame, by address */
    size_t frame_count, frame_room;
    struct codefile_segment segments[CODEFILE_SEGMENTS];
    size_t segment_count;
    struct codefile_range plt[4];
    size_t plt_count;
    struct codefile_word *words; /* by address; read when they are first asked for */
    size_t word_count, word_room;
    bool has_words;
    Dwarf_CFI *cfi;      /* NULL: there are no unwind tables */
    uint8_t **is_target; /* of each segment with code: a bit for each byte (codefile_is_target) */
    unsigned machine;    /* e_machine */
    uint64_t entry;      /* e_entry: where a program begins */
    bool has_symtab;     /* else it is stripped */
    bool is_program;     /* no library */
};

/* debug_folders may be NULL (as for the symbolizer). 0, or -1. codefile_close() in either case. */
int codefile_open(struct codefile *code, const char *path, const char *debug_folders,
                  struct error *error);
void codefile_close(struct codefile *code);

/* Adds functions that have no symbol, as in a stripped program, but unwind tables: they are called
 * by their address. Symbols lie elsewhere then. 0, or -1: out of memory. */
int codefile_name_unnamed(struct codefile *code);

/* The bytes at the address, and how many follow it in its segment. NULL: there are none. */
const uint8_t *codefile_bytes(const struct codefile *code, uint64_t address, size_t *left);
/* The same, if it is code. */
const uint8_t *codefile_text(const struct codefile *code, uint64_t address, size_t *left);
bool codefile_is_plt(const struct codefile *code, uint64_t address);
/* The function of this file whose address the loader writes to that word, by its name; 0: another
 * file's, or none. */
uint64_t codefile_bound_to(struct codefile *code, uint64_t word);

/* The first symbol at or behind the address, by its place: symbol_count: there is none. */
size_t codefile_symbol_from(const struct codefile *code, uint64_t address);
/* The extent of a function by unwind tables; NULL: they know none there. */
const struct codefile_range *codefile_frame(const struct codefile *code, uint64_t address);
/* The first extent that ends behind the address, by its place. */
size_t codefile_frame_from(const struct codefile *code, uint64_t address);

/* Whether the bytes of a call, jump or conditional jump over 32 bits, wherever such bytes are in
 * the code, lead to the address. */
bool codefile_is_target(struct codefile *code, uint64_t address);

#endif
