/* SPDX-License-Identifier: MIT */
/* malloc.h: what operator new and delete share with malloc. */
#ifndef RUNTIME_ENTRY_MALLOC_H
#define RUNTIME_ENTRY_MALLOC_H

#include <stddef.h>
#include <stdint.h>

/* frame_address: of the operator, whose caller is charged. */
void *malloc_for_new(size_t size, const void *frame_address);
void *malloc_for_aligned_new(size_t size, size_t alignment, const void *frame_address);
void malloc_for_delete(void *pointer, uintptr_t stack);

#endif
