/* SPDX-License-Identifier: MIT */
/*
 * chunks.h: memory that is only ever added to and freed all at once.
 *
 * Used inside analyze/symbol for names and frames that live as long as the symbolizer. Not
 * thread-safe: each owner has its own.
 */
#ifndef ANALYZE_SYMBOL_CHUNKS_H
#define ANALYZE_SYMBOL_CHUNKS_H

#include <stddef.h>

struct chunk;

/* All zero is empty and ready. */
struct chunks {
    struct chunk *newest;
    size_t used; /* bytes of the newest chunk */
};

/* Memory for size bytes, aligned for any object, not cleared; NULL: out of memory. */
void *chunks_alloc(struct chunks *chunks, size_t size);
/* A copy of the string; NULL: out of memory. */
char *chunks_string(struct chunks *chunks, const char *text);
void chunks_free(struct chunks *chunks);

#endif
