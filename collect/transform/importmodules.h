/* SPDX-License-Identifier: MIT */
/*
 * importmodules.h: the program files of an imported file, with ids.
 *
 * Called by collect/importer. Start from {0}.
 */
#ifndef COLLECT_TRANSFORM_IMPORTMODULES_H
#define COLLECT_TRANSFORM_IMPORTMODULES_H

#include "analyze/base/numbermap.h"
#include "analyze/import/heaptrackfile.h"
#include "collect/recordfile.h"

struct importmodules {
    struct memtrace_module *items; /* by id; 0 is none */
    size_t count;
    size_t capacity;
    struct numbermap ids; /* hash of path and base -> id */
    uint32_t *mapped;     /* ids that are in memory now */
    size_t mapped_count;
    size_t mapped_capacity;
};

/* The id of a module of this path and base, a new one where there is none; its range grows to hold
 * [start, end). "": 0. 0 also where there is no room for more; -1: out of memory. */
int64_t importmodules_id(struct importmodules *modules, const struct heaptrackfile_module *module);

/* It is in memory now, or nothing is. 0 or -1. */
int importmodules_map(struct importmodules *modules, const struct heaptrackfile_module *module);
void importmodules_unmap_all(struct importmodules *modules);

/* The id of what is mapped at an address; 0: nothing. */
uint32_t importmodules_at(const struct importmodules *modules, uint64_t address);

/* Writes all of them. 0 or -1. */
int importmodules_write(const struct importmodules *modules, struct recordfile *file,
                        struct error *error);
void importmodules_free(struct importmodules *modules);

#endif
