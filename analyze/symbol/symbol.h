/* SPDX-License-Identifier: MIT */
/*
 * symbol.h: turns module + offset into function, file and line, inlined frames included.
 *
 * Called by analyze/model and cli. Debug information is read by elfutils, names are demangled by
 * libiberty. Debug files are fetched from the network only where debuginfod.h says so. A symbolizer
 * belongs to one thread at a time; symbolizer_prepare starts and joins threads of its own inside
 * the call.
 *
 * What is known about a module comes, best first, from: the DWARF of the file itself or of its
 * separate debug file (found by build-id, by path or by .gnu_debuglink, or fetched), .symtab,
 * .dynsym, and the .symtab inside .gnu_debugdata. A file whose build-id is not the recorded one is
 * never used for names: its frames stay unknown and symbolizer_warnings says so.
 */
#ifndef ANALYZE_SYMBOL_SYMBOL_H
#define ANALYZE_SYMBOL_SYMBOL_H

#include "analyze/symbol/symbolmodule.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct symbolizer;

struct symbolizer_options {
    const char *debug_folders; /* colon-separated roots of debug files; NULL: /usr/lib/debug */
    unsigned threads;          /* of symbolizer_prepare; 0: one for each CPU, at most 8 */
    bool cached;               /* answers are kept on disk (cachefolder.h), and taken from there */
};

/* One address for symbolizer_prepare. */
struct symbol_address {
    size_t module;   /* index into the modules of the same call */
    uint64_t offset; /* as for symbolizer_resolve */
};

enum { SYMBOL_CANCELLED = 1 };

/* Called in the thread that called symbolizer_prepare, now and then and once at the end. */
typedef void (*symbol_progress)(void *context, size_t done, size_t total);

/* Options may be NULL. NULL on failure, with the reason in error. */
struct symbolizer *symbolizer_open(const struct symbolizer_options *options, struct error *error);

/* NULL is allowed. Every string and frame handed out dies here. New answers go to the cache. */
void symbolizer_close(struct symbolizer *symbolizer);

/*
 * The frames at one place. `offset` is in the file's own terms (address - bias, the st_value of
 * symbols), and for a return address already minus one. 0: done (perhaps with count 0); -1: out of
 * memory, out has count 0. Answers are cached; asked again the same pointers come back.
 */
int symbolizer_resolve(struct symbolizer *symbolizer, const struct symbol_module *module,
                       uint64_t offset, struct symbol_frames *out);

/*
 * Resolves many addresses at once, in parallel where that helps, so that later symbolizer_resolve
 * calls for them are look-ups. Repeats are welcome. progress may be NULL. 0, -1 (out of memory), or
 * SYMBOL_CANCELLED soon after *cancel (NULL: never) became true: then only some have answers.
 */
int symbolizer_prepare(struct symbolizer *symbolizer, const struct symbol_module *modules,
                       size_t module_count, const struct symbol_address *addresses,
                       size_t address_count, const atomic_bool *cancel, symbol_progress progress,
                       void *context);

/* What the user must know about the names so far, one line each without newline (a module that
 * changed or is gone, a damaged debug file). Valid until the next call with this symbolizer. */
size_t symbolizer_warnings(const struct symbolizer *symbolizer, const char *const **lines);

/* Takes out "." and "x/..", as the files of frames are named: compilers name their own headers by
 * long detours. */
void symbol_shorten_path(char *path);

/* Demangles a C++ (Itanium), Rust (v0, legacy) or D name. The caller frees the result; NULL: the
 * name is not mangled (or no memory). Any thread. */
char *symbol_demangle(const char *name);

#endif
