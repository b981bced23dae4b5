/* SPDX-License-Identifier: MIT */
/*
 * batch.h: resolves many addresses of many modules on several threads.
 *
 * Used by symbol.c. The addresses come sorted by module, so that a thread works through one
 * module's units in order.
 */
#ifndef ANALYZE_SYMBOL_BATCH_H
#define ANALYZE_SYMBOL_BATCH_H

#include "analyze/symbol/modulesymbols.h"

struct batch_item {
    struct modulesymbols *module;
    uint64_t offset;
    const struct symbol_frames *frames; /* the answer */
};

/* Fills frames of every item; items are sorted by module and offset, without repeats. 0, or -1: out
 * of memory, some items have no frames. */
int batch_resolve(struct batch_item *items, size_t count, unsigned threads,
                  symbol_progress progress, void *context);

#endif
