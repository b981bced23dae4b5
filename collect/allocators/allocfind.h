/* SPDX-License-Identifier: MIT */
/*
 * allocfind.h: which functions of a process's objects specifications mean.
 *
 * Called by allocators.c, in a job of it. Belongs to one thread.
 */
#ifndef COLLECT_ALLOCATORS_ALLOCFIND_H
#define COLLECT_ALLOCATORS_ALLOCFIND_H

#include "collect/allocators/allocprocess.h"
#include "collect/allocators/allocsets.h"
#include "collect/allocators/allocspec.h"

struct allocfound {
    struct allocobject *object;
    const struct codefile_symbol *symbol;
    const struct allocspec *spec;
};

struct allocfounds {
    struct allocfound *items;
    size_t count, room;
};

/* Each function once. What somebody named and is not found, or found twice, is told by a line, and
 * left out. */
struct allocfounds allocfind_all(struct allocprocess *process, const struct allocspecs *specs,
                                 void (*tell)(const char *line));

/* Whether an object has the allocator of a set (allocsets.h). */
bool allocfind_shows(const struct codefile *code, const char *const *marks);
bool allocfind_is_in(const struct allocset *set, struct allocobject *object);

/* Whether it is worth while to look for an allocator that nothing counts. */
bool allocfind_may_hold(struct allocobject *object);

/* Whether it is a library with a malloc that others may call, or MemTrace's own, so that a block of
 * it may be one that is counted anyway. */
bool allocfind_has_malloc(struct allocobject *object);

/* Whether the program, or a library, calls a malloc or operator new of its own, which nothing
 * counts. */
bool allocfind_has_own(struct allocobject *object);

/* The function's name as programmers write it, without its parameters: to be freed, never NULL. */
char *allocfind_name(const char *symbol);

#endif
