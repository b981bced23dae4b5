/* SPDX-License-Identifier: MIT */
/*
 * arena.h: memory that is only ever added to and freed all at once.
 *
 * For names and frames that live as long as who shows them, as in analyze/symbol and query. Not
 * thread-safe: each owner has its own.
 */
#ifndef ANALYZE_BASE_ARENA_H
#define ANALYZE_BASE_ARENA_H

#include <stddef.h>

struct chunk;

/* All zero is empty and ready. */
struct arena {
    struct chunk *newest;
    size_t used; /* bytes of the newest chunk */
};

/* Memory for size bytes, aligned for any object, not cleared; NULL: out of memory. */
void *arena_alloc(struct arena *arena, size_t size);
/* A copy of the string; NULL: out of memory. */
char *arena_string(struct arena *arena, const char *text);
void arena_free(struct arena *arena);

#endif
