/* SPDX-License-Identifier: MIT */
/*
 * own_maps.h: the list of what the runtime has mapped for itself, for who wants to know how much of
 * the program's memory is not the program's.
 *
 * Called by sys.c for each private mapping. No lock: in handlers, in forked children, before main.
 */
#ifndef RUNTIME_BASE_OWN_MAPS_H
#define RUNTIME_BASE_OWN_MAPS_H

#include "memtrace/ownmaps.h"

extern struct memtrace_own_maps own_maps;

void own_maps_add(void *address, size_t size);
/* The mapping that begins at this address has this size now. */
void own_maps_resize(const void *address, size_t size);
/* The mapping that begins at this address stays as long as the process. */
void own_maps_keep(const void *address);
/* Calls unmap() for each that does not stay: nobody uses them any more. */
void own_maps_give_up(void (*unmap)(void *address, size_t size));
/* The mapping that begins at this address has gone. */
void own_maps_remove(void *address);

#endif
