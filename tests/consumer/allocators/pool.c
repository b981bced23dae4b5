/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

enum { CELL = 256, CELLS = 1024 };

struct pool {
    size_t used;
    void *freed;
    char cells[CELLS][CELL];
};

struct pool *pool_open(void) {
    return calloc(1, sizeof(struct pool));
}

void *pool_alloc(struct pool *pool, size_t size) {
    void *block = pool->freed;
    if (size > CELL) {
        return NULL;
    }
    if (block != NULL) {
        memcpy(&pool->freed, block, sizeof pool->freed);
        return block;
    }
    return pool->used < CELLS ? pool->cells[pool->used++] : NULL;
}

/* A cell is as large as any. */
void *pool_grow(struct pool *pool, void *block, size_t size) {
    (void)pool;
    return size <= CELL ? block : NULL;
}

void pool_free(struct pool *pool, void *block) {
    memcpy(block, &pool->freed, sizeof pool->freed);
    pool->freed = block;
}

void pool_close(struct pool *pool) {
    free(pool);
}
