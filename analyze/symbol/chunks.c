/* SPDX-License-Identifier: MIT */
/*
 * chunks.c: memory freed all at once. See chunks.h.
 */
#include "analyze/symbol/chunks.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 64 * 1024 };

struct chunk {
    struct chunk *older;
    size_t size;
    alignas(max_align_t) char bytes[];
};

void *chunks_alloc(struct chunks *chunks, size_t size) {
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct chunk *chunk = chunks->newest;
    if (!chunk || chunk->size - chunks->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = malloc(sizeof *chunk + room);
        if (!chunk)
            return NULL;
        chunk->older = chunks->newest;
        chunk->size = room;
        chunks->newest = chunk;
        chunks->used = 0;
    }
    void *memory = chunk->bytes + chunks->used;
    chunks->used += size;
    return memory;
}

char *chunks_string(struct chunks *chunks, const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = chunks_alloc(chunks, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void chunks_free(struct chunks *chunks) {
    while (chunks->newest) {
        struct chunk *chunk = chunks->newest;
        chunks->newest = chunk->older;
        free(chunk);
    }
    chunks->used = 0;
}
