/* SPDX-License-Identifier: MIT */
/*
 * arena.c: memory freed all at once. See arena.h.
 */
#include "analyze/base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024 };

struct chunk {
    struct chunk *older;
    size_t size;
    alignas(max_align_t) char bytes[];
};

void *arena_alloc(struct arena *arena, size_t size) {
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct chunk *chunk = arena->newest;
    if (!chunk || chunk->size - arena->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = malloc(sizeof *chunk + room);
        if (!chunk) {
            return NULL;
        }
        chunk->older = arena->newest;
        chunk->size = room;
        arena->newest = chunk;
        arena->used = 0;
    }
    void *memory = chunk->bytes + arena->used;
    arena->used += size;
    return memory;
}

char *arena_string(struct arena *arena, const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = arena_alloc(arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void arena_free(struct arena *arena) {
    while (arena->newest) {
        struct chunk *chunk = arena->newest;
        arena->newest = chunk->older;
        free(chunk);
    }
    arena->used = 0;
}
