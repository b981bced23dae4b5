/* SPDX-License-Identifier: MIT */
/* malloc.h: what operator new and delete share with malloc. */
#ifndef RUNTIME_ENTRY_MALLOC_H
#define RUNTIME_ENTRY_MALLOC_H

#include "runtime/stack/walk.h"

void *malloc_for_new(size_t size, struct frame caller);
void *malloc_for_aligned_new(size_t size, size_t alignment, struct frame caller);
void malloc_for_delete(void *pointer, uintptr_t stack);

#endif
