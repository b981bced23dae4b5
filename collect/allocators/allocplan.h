/* SPDX-License-Identifier: MIT */
/*
 * allocplan.h: the plan (memtrace/allocators.h): code beside the objects, and what leads to it.
 *
 * Called by allocators.c. Belongs to one thread.
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
        bool is_wrapper; /* it calls another function of its set (allocnest.h) */
        size_t block;    /* where its code goes, and how far in it */
        uint64_t at;
    } * code; /* of each */
    size_t count, room, code_room;
    struct memtrace_plan_block blocks[MEMTRACE_PLAN_BLOCKS];
    uint8_t *bytes[MEMTRACE_PLAN_BLOCKS];
    size_t block_count;
};

/* One more function. 0, or -1: out of memory. */
int allocplan_add(struct allocplan *plan, const struct allocfound *found,
                  const struct patchmove *move);
void allocplan_leave_out(struct allocplan *plan, size_t number);
/* Takes room for the code and makes it. 0, or -1: nothing is left, or no memory. A function for
 * which there is no room is told, and left out. */
int allocplan_place(struct allocplan *plan, struct allocprocess *process,
                    void (*tell)(const char *line), struct error *error);
/* Writes the plan. 0 or -1. */
int allocplan_write_to(const struct allocplan *plan, int fd, struct error *error);
/* The same to a file, which then is there whole or not at all. */
int allocplan_write(const struct allocplan *plan, const char *path, struct error *error);
void allocplan_free(struct allocplan *plan);

#endif
