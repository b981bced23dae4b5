/* SPDX-License-Identifier: MIT */
/* pool.h: memory of one kind of things, given out again when it is given back. */
#ifndef POOL_H
#define POOL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pool;

struct pool *pool_open(void);
void *pool_alloc(struct pool *pool, size_t size);
void *pool_grow(struct pool *pool, void *block, size_t size);
void pool_free(struct pool *pool, void *block);
void pool_close(struct pool *pool);

#ifdef __cplusplus
}
#endif
#endif
