/* SPDX-License-Identifier: MIT */
/* builtother.h: allocators in another unit, and in another language (builtother.c). */
#ifndef BUILTOTHER_H
#define BUILTOTHER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *other_take(size_t size);
void *other_outer(size_t size);
void *other_static(size_t size);
void other_give(void *block);
void other_clear(void);
void *somewhere(size_t size); /* of proposed.cpp */

#ifdef __cplusplus
}
#endif
#endif
