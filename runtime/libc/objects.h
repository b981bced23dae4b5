/* SPDX-License-Identifier: MIT */
/*
 * objects.h: the loader's lists of loaded objects. Looking at them takes its lock: only where the
 * program itself calls the loader, never on the allocation path.
 */
#ifndef RUNTIME_ENTRY_OBJECTS_H
#define RUNTIME_ENTRY_OBJECTS_H

#include <link.h>
#include <stddef.h>

/* Calls `function` while nothing can be loaded or unloaded. It must not call the loader. */
void objects_hold(void (*function)(void *argument), void *argument);
/* Calls it for each object of each namespace, held likewise. */
void objects_visit(void (*function)(void *argument, struct link_map *map), void *argument);

/* Held likewise: the list of the next namespace; the first is _r_debug. */
const struct r_debug *objects_next_list(const struct r_debug *list);

/* The object that this address lies in; NULL: none. Takes no lock. */
struct link_map *objects_at(const void *address);

/* What an object says of itself: needs no lock where the object cannot go. */

/* Entry `tag` of its dynamic section; NULL: none. Its value; its value as an address. */
const ElfW(Dyn) * objects_dynamic(const struct link_map *map, ElfW(Sxword) tag);
size_t objects_value(const struct link_map *map, ElfW(Sxword) tag);
const void *objects_address(const struct link_map *map, ElfW(Sxword) tag);
/* The C library. */
struct link_map *objects_libc(void);
int objects_is_libc(const struct link_map *map);
/* What the object itself defines by this name, whatever lies in front of it; NULL: nothing. */
void *objects_symbol(const struct link_map *map, const char *name);
/* The function that is meant by this name where no version is named. NULL: none, or to be asked of
 * dlsym(). */
void *objects_function(const struct link_map *map, const char *name);
/* The same of the first that has it behind us, as dlsym(RTLD_NEXT) finds it: among what the program
 * was started with, where that has the C library behind us. Takes no lock: another thread may stand
 * still in the constructor of what it opens. */
void *objects_next(const char *name);
/* Of an allocator's function: `next`, which dlsym() says is behind ours, or one that lies before
 * it. */
void *objects_nearer(const char *name, void *next);

#endif
