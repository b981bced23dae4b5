/* SPDX-License-Identifier: MIT */
/*
 * objects.h: the loader's lists of loaded objects. Looking at them takes its lock: only where the
 * program itself calls the loader, never on the allocation path.
 */
#ifndef RUNTIME_ENTRY_OBJECTS_H
#define RUNTIME_ENTRY_OBJECTS_H

#include <link.h>

/* Calls `function` while nothing can be loaded or unloaded. It must not call the loader. */
void objects_hold(void (*function)(void *argument), void *argument);
/* Calls it for each object of each namespace, held likewise. */
void objects_visit(void (*function)(void *argument, struct link_map *map), void *argument);

#endif
