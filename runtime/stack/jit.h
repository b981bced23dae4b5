/* SPDX-License-Identifier: MIT */
/*
 * jit.h: unwind information of code that lies in no loaded object, as its maker registered it
 * (__register_frame). Asked where the loader knows nothing of an address.
 *
 * Which code an entry is about is read when it comes; the entry itself when a frame of that code is
 * met, and by then it is there: code that runs must not be deregistered. No lock: a place is taken
 * by one compare-and-swap, published and given back by one store each, and readers look whether it
 * stayed the same. Places are searched one after the other, once for a return address.
 */
#ifndef RUNTIME_STACK_JIT_H
#define RUNTIME_STACK_JIT_H

#include "runtime/stack/cfi.h"

/* Adds the entries of one .eh_frame, or a single FDE, under the name `key`. */
void jit_add(const void *key, const void *frames);
/* Forgets what was added under that name: 1, with the range that its code lies in; 0: nothing. */
int jit_remove(const void *key, uintptr_t *start, uintptr_t *end);

/* The row for `address`, as cfi_find(). 0, or -1. */
int jit_find(uintptr_t address, struct cfi_row *row);
/* Whether something was registered for this address. */
int jit_holds(uintptr_t address);

#endif
