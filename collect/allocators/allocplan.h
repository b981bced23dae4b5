/* SPDX-License-Identifier: MIT */
/*
 * allocplan.h: the plan (memtrace/allocators.h): code beside the objects, and what leads to it.
 *
 * Called by allocators.c, in a job of it. Belongs to one thread.
 */
#ifndef COLLECT_ALLOCATORS_ALLOCPLAN_H
#define COLLECT_ALLOCATORS_ALLOCPLAN_H

#include "collect/allocators/allocfind.h"
#include "collect/allocators/patchmove.h"

struct allocplan {
    struct memtrace_allocator_entries entries;
    uint64_t sites; /* of the runtime's */
    struct codefile_range runtime;
    uint32_t first;
    struct memtrace_plan_site *list; /* `original` and `new` are set by allocplan_place() */
    struct allocplan_code {
        struct allocobject *object;
        const struct codefile_symbol *symbol;
        const char *set; /* the ready-made set that it is from; NULL: none */
        struct patchmove move;
        bool is_guarded; /* calls of MemTrace's own are not for it, nor those that another function
                            which is followed ends in, since these come from there, too */
        bool is_inner;   /* in a library that defines malloc: its blocks may be another one's */
        bool is_wrapper; /* it calls another function of its set */
        size_t block;    /* where its code goes, and how far in it */
        uint64_t at;
    } * code; /* of each */
    size_t count, room, code_room;
    struct memtrace_plan_block blocks[MEMTRACE_PLAN_BLOCKS];
    uint8_t *bytes[MEMTRACE_PLAN_BLOCKS];
    size_t block_count;
};

/* One more function. */
void allocplan_add(struct allocplan *plan, const struct allocfound *found,
                   const struct patchmove *move);
/* Functions of a ready-made set that lead to each other. Which ones do is the compiler's choice:
 * what one has made part of its caller the other one has left a call. A block counts once all the
 * same, with the function that the program calls where that can be had. So where one that allocates
 * ends in a jump to another one, that one's own calls alone count (it is guarded). One that calls
 * another one is left out: its blocks are the other one's. */
void allocplan_resolve(struct allocplan *plan);
/* Takes room for the code and makes it. A function for which there is no room is told, and left
 * out. */
void allocplan_place(struct allocplan *plan, struct allocprocess *process,
                     void (*tell)(const char *line));
void allocplan_write_to(const struct allocplan *plan, int fd);
/* The same to a file, which then is there whole or not at all. */
void allocplan_write(const struct allocplan *plan, const char *path);

#endif
