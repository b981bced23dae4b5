/* SPDX-License-Identifier: MIT */
/*
 * symbolcache.h: the answers about one module that earlier commands found, on disk by its build-id.
 *
 * Used by symbol.c, by the symbolizer's own thread. An entry counts only as long as the
 * files that the answers came from are what they were (size and time of the module's own file and
 * of its debug file): a debug file that appears later, or changes, begins it anew.
 */
#ifndef ANALYZE_SYMBOL_SYMBOLCACHE_H
#define ANALYZE_SYMBOL_SYMBOLCACHE_H

#include "analyze/base/arena.h"
#include "analyze/base/numbermap.h"
#include "analyze/read/cachefolder.h"
#include "analyze/symbol/debugfile.h"

/* What a file on disk is known by; all zero: there is none. */
struct symbolcache_file {
    uint64_t size;
    int64_t seconds;
    int64_t nanoseconds;
};

/* Which files the answers come from. */
struct symbolcache_source {
    uint8_t build_id[64];
    uint64_t build_id_size; /* 0: nothing is cached */
    struct symbolcache_file object;
    struct symbolcache_file debug;
};

/* All zero: nothing is there. The arrays are the file's. */
struct symbolcache {
    struct cachefolder_file file;
    const struct symbolcache_answer *answers; /* by offset */
    size_t answer_count;
    const struct symbolcache_frame *frames;
    size_t frame_count;
    const char *strings;
    size_t string_size;
};

/* The source as it is now. */
struct symbolcache_source symbolcache_source(const struct symbol_module *module,
                                             const struct debugfile_paths *paths);

/* Opens what there is of this source; else the cache is empty. */
void symbolcache_open(struct symbolcache *cache, const struct symbolcache_source *source);
void symbolcache_close(struct symbolcache *cache);

/* The answer, made in memory with strings that are the cache's; NULL: it is not there. */
const struct symbol_frames *symbolcache_find(const struct symbolcache *cache, uint64_t offset,
                                             struct arena *memory);

/* Writes these answers (offset -> struct symbol_frames) and those that are in the file. What cannot
 * be written is found out again. */
void symbolcache_store(const struct symbolcache_source *source, const struct numbermap *answers);

#endif
