/* SPDX-License-Identifier: MIT */
/*
 * modulesymbols.h: everything known about one module: its files, tables and answers so far.
 *
 * Used by symbol.c. The shared part (files, symbol table, unit index) is made once,
 * under the lock, and then only read. Whatever libdw changes while it reads is in a `lookup`, which
 * belongs to one thread at a time: modulesymbols_take lends one, several may be out at once.
 * `answers` and what follows is touched only by the symbolizer's own thread.
 */
#ifndef ANALYZE_SYMBOL_MODULESYMBOLS_H
#define ANALYZE_SYMBOL_MODULESYMBOLS_H

#include "analyze/base/numbermap.h"
#include "analyze/symbol/chunks.h"
#include "analyze/symbol/dwarffile.h"
#include "analyze/symbol/symbolcache.h"
#include "analyze/symbol/symtab.h"

#include <pthread.h>

/* One thread's access to a module. Frames and names it makes live as long as the module. */
struct lookup {
    struct modulesymbols *module;
    struct dwarffile dwarf; /* dwarf.dwarf NULL: none */
    struct numbermap names; /* address of a mangled name or long path -> the readable one */
    struct chunks memory;
    struct lookup *next_idle;
    struct lookup *next;
};

struct modulesymbols {
    char *path;
    uint8_t *build_id;
    size_t build_id_size;
    const char *folders;
    unsigned threads; /* for what is read once */

    pthread_mutex_t lock; /* guards everything below, up to `answers` */
    bool searched;        /* paths are filled */
    bool unpacked;        /* image is what it is to be */
    bool indexed;         /* units is filled */
    bool symtab_loaded;
    bool split; /* some of its debug information is in .dwo files */
    struct debugfile_paths paths;
    struct debugimage image;
    struct symtab symtab;
    struct rangetable units;
    struct lookup *idle;
    struct lookup *lookups;

    struct numbermap answers; /* offset -> struct symbol_frames */
    bool cached;              /* answers are kept on disk */
    bool cache_opened;
    struct symbolcache_source source;
    struct symbolcache cache;
    struct chunks cache_memory; /* answers that came from the cache */
    size_t fresh;               /* answers that did not */
};

/* NULL: out of memory. */
struct modulesymbols *modulesymbols_new(const struct symbol_module *module, const char *folders,
                                        unsigned threads, bool cached);
/* What is new goes to the cache. */
void modulesymbols_free(struct modulesymbols *module);

/* The answer that is known already, or that an earlier command found; NULL: none. */
const struct symbol_frames *modulesymbols_known(struct modulesymbols *module, uint64_t offset);
/* Keeps a new answer. 0, or -1: out of memory. */
int modulesymbols_keep(struct modulesymbols *module, uint64_t offset,
                       const struct symbol_frames *frames);

/* Lends a lookup; NULL: out of memory. Any thread. */
struct lookup *modulesymbols_take(struct modulesymbols *module);
void modulesymbols_give_back(struct lookup *lookup);

/* The frames at the offset (perhaps none); NULL: out of memory. */
const struct symbol_frames *modulesymbols_frames(struct lookup *lookup, uint64_t offset);

#endif
