/* SPDX-License-Identifier: MIT */
/*
 * attachgift.h: what a program that is attached to gets besides settings: its own seccomp filters,
 * for the runtime to ask them, and the library where the program cannot open ours (a container,
 * another root): as a file of memory that the new thread has made, which we fill and seal.
 *
 * What we write to is checked, since the program may be hostile and we root: we take a copy of the
 * very descriptor, with no more rights than it has there, and write only to an empty file of
 * memory.
 *
 * Called by attachthread.c.
 */
#ifndef COLLECT_ATTACH_ATTACHGIFT_H
#define COLLECT_ATTACH_ATTACHGIFT_H

#include "collect/attach/attachtarget.h"
#include "collect/attach/attachthread.h"

/* Bytes, of whole pages. */
size_t attachgift_filters_size(const struct attachcall *call);

/* The thread waits, its struct at `place`: all that it wants is written there. 0, or -1 with error:
 * then it has been told to give up. */
int attachgift_give(const struct attachcall *call, uint64_t place, int file, struct error *error);

/* The address of the function in the library that is there, however it came there; 0: not known. */
uint64_t attachgift_function(const struct attachtarget *target, const struct attachmapping *own,
                             const struct attachcall *call);

#endif
