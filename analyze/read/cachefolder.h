/* SPDX-License-Identifier: MIT */
/*
 * cachefolder.h: what took long to find out, kept for the next command: files in
 * $MEMTRACE_CACHE, else $XDG_CACHE_HOME/memtrace, else ~/.cache/memtrace.
 *
 * Called by analyze/symbol (names) and analyze/model (indices of recordings). Any thread. Nothing
 * depends on a cache: a file that is missing, damaged, of another version or not this user's is as
 * if it were not there, and one that cannot be written is not. Several processes may use one folder
 * at once: a file appears under its name whole, and who has it open keeps what it had.
 *
 * An empty MEMTRACE_CACHE turns it off; so does --no-cache, which sets that.
 */
#ifndef ANALYZE_READ_CACHEFOLDER_H
#define ANALYZE_READ_CACHEFOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cachefolder_kind {
    const char *name;    /* of the folder below the cache's: "symbols" */
    uint32_t version;    /* of what its files hold */
    uint64_t most_bytes; /* of all its files together: those not used for longest go first */
};

/* What a file holds, mapped read-only; aligned as for any object. */
struct cachefolder_file {
    const unsigned char *bytes; /* NULL: not loaded */
    size_t size;
    void *mapping;
    size_t mapping_size;
};

struct cachefolder_piece {
    const void *bytes;
    size_t size;
};

/* False: whatever is asked for is not there, and nothing is kept. */
bool cachefolder_is_on(void);

/* 0; -1: there is no such file. The name has no slash. */
int cachefolder_load(const struct cachefolder_kind *kind, const char *name,
                     struct cachefolder_file *file);
void cachefolder_unload(struct cachefolder_file *file); /* of {0}, too */

/* Keeps the pieces, one behind the other, in the place of an older file of that name. 0, or -1: not
 * kept. */
int cachefolder_store(const struct cachefolder_kind *kind, const char *name,
                      const struct cachefolder_piece *pieces, size_t count);

/* A large file, to be read bit by bit: all there, but not looked through: who reads checks what is
 * read. The payload begins at CACHEFOLDER_HEAD and has *size bytes. The descriptor, or -1. */
enum { CACHEFOLDER_HEAD = 64 };
int cachefolder_open(const struct cachefolder_kind *kind, const char *name, uint64_t *size);

/* Keeps what comes piece by piece: add, then finish in any case, which keeps it unless something
 * went wrong or `keeps` is false, and returns 0 then. */
struct cachefolder_writer {
    const struct cachefolder_kind *kind;
    int folder;
    int fd;
    uint64_t size; /* of what was added */
    bool failed;
    char name[208];
    char temporary[256];
};
void cachefolder_begin(struct cachefolder_writer *writer, const struct cachefolder_kind *kind,
                       const char *name);
void cachefolder_add(struct cachefolder_writer *writer, const void *bytes, size_t size);
int cachefolder_finish(struct cachefolder_writer *writer, bool keeps);

#endif
