/* SPDX-License-Identifier: MIT */
/*
 * ourmaps.h: the list of what the runtime has mapped for itself, for who wants to know how much of
 * the program's memory is not the program's.
 *
 * Called by sys.c for each private mapping. No lock: in handlers, in forked children, before main.
 */
#ifndef RUNTIME_BASE_OURMAPS_H
#define RUNTIME_BASE_OURMAPS_H

#include "memtrace/ownmaps.h"

extern struct memtrace_own_maps ourmaps;

void ourmaps_add(void *address, size_t size);
/* The mapping that begins at this address has this size now. */
void ourmaps_resize(const void *address, size_t size);
/* The mapping that begins at this address stays as long as the process. */
void ourmaps_keep(const void *address);
/* Calls unmap() for each that does not stay: nobody uses them any more. */
void ourmaps_give_up(void (*unmap)(void *address, size_t size));
/* The mapping that begins at this address has gone. */
void ourmaps_remove(void *address);

#endif
