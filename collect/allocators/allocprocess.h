/* SPDX-License-Identifier: MIT */
/*
 * allocprocess.h: what a process has loaded, and where there is room beside it: by /proc/PID/maps;
 * and whether a function's arguments are what a specification says, as far as its debug information
 * tells.
 *
 * Called by allocators.c, allocfind.c and allocplan.c, in a job of allocators.c. Belongs to one
 * thread.
 */
#ifndef COLLECT_ALLOCATORS_ALLOCPROCESS_H
#define COLLECT_ALLOCATORS_ALLOCPROCESS_H

#include "analyze/base/job.h"
#include "analyze/symbol/codefile.h"
#include "analyze/symbol/dwarffile.h"
#include "analyze/symbol/programfile.h"
#include "collect/allocators/allocspec.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* ---- Arguments ---- */

/* The debug information of an object, opened when it is first asked. All zero is ready. */
struct allocarguments {
    bool is_looked_for, is_there;
    struct dwarffile file;
    struct rangetable units;
    struct job_memory *memory;
    bool has_failed; /* for want of memory: nothing more is known */
};

enum { ALLOCARGUMENTS_WHY = 160 };

/* `path` is the file with the DWARF, NULL: there is none. `function` in the file's terms. 0: they
 * fit, or it is not known; -1: they do not, and why. */
int allocarguments_check(struct allocarguments *arguments, const char *path, uint64_t function,
                         const struct allocspec *spec, char why[ALLOCARGUMENTS_WHY]);
void allocarguments_close(struct allocarguments *arguments);

/* ---- What is loaded ---- */

/* A file that is mapped as code, at one place. */
struct allocobject {
    char path[PATH_MAX]; /* as the process names it */
    uint64_t bias;       /* the process's addresses are the file's and this */
    uint64_t low, high;  /* all of its mappings, in the process */
    bool is_program;
    bool is_open;            /* `code` can be used */
    bool is_looked_at;       /* by allocfind_look(): */
    struct allocators holds; /* whose malloc it has */
    struct codefile code;
    struct allocarguments arguments;
};

struct allocprocess {
    pid_t pid;
    struct codefile_range *taken; /* by address; one's end is before the next one's begin */
    size_t taken_count, taken_room;
    struct allocobject *objects; /* the program first */
    size_t object_count, object_room;
    struct codefile_range runtime; /* where the code of MemTrace's own library is */
};

/* Reads the maps, and opens the files, but for the one that holds the address `runtime`, unless
 * that is the program itself. What cannot be read is not opened. */
struct allocprocess *allocprocess_open(pid_t pid, uint64_t runtime);
/* A file alone, not loaded: the only object of a process that is none. */
struct allocprocess *allocprocess_open_file(const char *path);

/* Whether the process has a page of its own there, in place of the file's: something was written.
 */
bool allocprocess_has_changed(const struct allocprocess *process, uint64_t address);
/* Whether its return addresses are kept a second time, by the processor. */
bool allocprocess_has_shadow_stack(const struct allocprocess *process);

/* Finds room for `size` bytes, whole pages, from which all of the object is in reach of jumps,
 * takes it, and returns its address. 0: there is none. */
uint64_t allocprocess_take(struct allocprocess *process, const struct allocobject *object,
                           uint64_t size);

#endif
