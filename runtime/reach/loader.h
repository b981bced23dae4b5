/* SPDX-License-Identifier: MIT */
/*
 * loader.h: which objects are loaded, for who looks at the profile: a library that no call path
 * goes through may have an allocator of its own.
 */
#ifndef RUNTIME_REACH_LOADER_H
#define RUNTIME_REACH_LOADER_H

/* Notes in the profile what has been loaded since. Takes the loader's lock: at the start, at the
 * end, and where the program itself calls the loader. */
void loader_note_objects(void);

#endif
