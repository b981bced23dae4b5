/* SPDX-License-Identifier: MIT */
/*
 * exidx.h: ARM's tables of exceptions (.ARM.exidx and .ARM.extab: "Exception Handling ABI for the
 * Arm Architecture", IHI 0038, chapters 6, 7 and 10) in the terms of cfi.h. They tell of a whole
 * function how its frame is taken down where it may call: of its first and last instructions they
 * are not true, and of what an interrupted one is about to do they know nothing.
 */
#ifndef RUNTIME_STACK_EXIDX_H
#define RUNTIME_STACK_EXIDX_H

#include "runtime/stack/cfi.h"

#include <stddef.h>

/* The row for `address`, from a table of so many entries, as cfi_find(). 0, or -1: no entry is
 * about it, it says that there is no way outwards, or the way is one that no row can tell. */
int exidx_find(const uint8_t *table, size_t count, uintptr_t address, struct cfi_row *row);

#endif
