/* SPDX-License-Identifier: MIT */
/*
 * heaptrackfile.h: reads a heaptrack data file: one that was interpreted (with names) or a raw one
 * (with modules), packed or not, of file versions 0 to 3.
 *
 * Called by collect/transform/importer. What does not add up (numbers that nothing has, lines that
 * are no lines) is left out and counted. Memory grows with texts, not with events. All in a job,
 * which the visitor may end, too.
 */
#ifndef ANALYZE_IMPORT_HEAPTRACKFILE_H
#define ANALYZE_IMPORT_HEAPTRACKFILE_H

#include "analyze/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAPTRACKFILE_FRAMES = 256 }; /* of a place, at most: what is beyond is left out */

struct heaptrackfile_frame {
    const char *function; /* "": unknown */
    const char *file;     /* "": unknown */
    uint32_t line;
};

/* A program file in memory, of a raw file. */
struct heaptrackfile_module {
    const char *path;
    uint64_t base; /* added to its own addresses */
    uint64_t start;
    uint64_t end;
};

/* How a line names a block: by its address, or by a number that all blocks of one size and call
 * path have; of those that which began last ends first. */
enum heaptrackfile_key { HEAPTRACKFILE_ADDRESS, HEAPTRACKFILE_NUMBER };

/* Whom it is told. Texts are theirs until they return. */
struct heaptrackfile_visitor {
    void *context;
    void (*program)(void *context, const char *path);
    void (*command)(void *context, const char *text);
    void (*modules_gone)(void *context); /* those that are there follow */
    void (*module)(void *context, const struct heaptrackfile_module *module);
    /* An address that calls, numbered from 1 on; innermost function first. */
    void (*place)(void *context, uint64_t address, const char *module,
                  const struct heaptrackfile_frame *frames, size_t count);
    /* A call path, numbered from 1 on: path `parent` (0: none) and where it goes on: a place by
     * number, or, in raw files, an address. */
    void (*path)(void *context, bool is_address, uint64_t place, uint64_t parent);
    void (*time)(void *context, uint64_t time_ns);
    void (*resident)(void *context, uint64_t bytes);
    void (*begin)(void *context, enum heaptrackfile_key kind, uint64_t key, uint64_t size,
                  uint64_t path);
    void (*end)(void *context, enum heaptrackfile_key kind, uint64_t key);
    void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes; may be NULL */
};

struct heaptrackfile_result {
    uint64_t lines;
    uint64_t bad_lines;
    bool is_incomplete; /* it says that not all could be read of what it was made of */
    char damage[128];   /* "": it was read to its end */
};

void heaptrackfile_read(const char *path, const struct heaptrackfile_visitor *visitor,
                        struct heaptrackfile_result *result);

#endif
