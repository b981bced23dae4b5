/* SPDX-License-Identifier: MIT */
/*
 * libc.h: what differs from one C library to another, and between a program that a loader put
 * together and one that is linked statically. CMake chooses the files that implement it:
 *
 *   glibc.c, glibc_common.c  glibc, shared; objects.c, what its loader says of objects
 *   musl.c, musl_common.c    musl, shared
 *   static.c                 a program that holds all of it, with static_glibc.c and
 *                            glibc_common.c, or with static_musl.c and musl_common.c
 *   outermost.c              all: where paths end without unwind tables
 *   elfobject.c              all but glibc, shared: what its loader would tell
 *
 * and leaves out of entry/ what only glibc's loader makes possible (reach/without_glibc.c stands
 * in). Called from the allocation path, in handlers, in any thread and before main: no locks, no
 * allocations.
 */
#ifndef RUNTIME_LIBC_LIBC_H
#define RUNTIME_LIBC_LIBC_H

#include "runtime/base/compiler.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* A loaded object. */
struct libc_object {
    uintptr_t start, end;
    uintptr_t bias;                 /* what is to be added to addresses in its file */
    const uint8_t *eh_frame_header; /* .eh_frame_hdr, or ARM's .ARM.exidx; NULL: none */
    size_t unwind_entries;          /* of the latter */
    const char *name;               /* as the loader has it; "" or NULL: the program */
};

/* The object that this address lies in. 0, or -1: none. */
int libc_find_object(uintptr_t address, struct libc_object *object);
/* Whether this code, which lies in the object [start, end), is the runtime's own. */
int libc_is_runtime(uintptr_t code, uintptr_t start, uintptr_t end);
/* An address in the loader, if that is an object of its own; else 0. */
uintptr_t libc_loader(void);
/* Whether the handlers' return into the kernel has an unwind table. */
int libc_describes_signals(void);
/* Whether the code that goes on at `pc` was called by nobody, although no table says so. */
int libc_is_outermost(uintptr_t pc);
/* Whether this code, of which nothing else is known, may be taken to keep frame pointers. */
int libc_may_keep_frame_pointers(uintptr_t pc);
/* A function of ours with this return address was called by the C library as a thread's first. */
void libc_note_outermost(const void *pc);
/* Whether guards may stand on the stack: who looks at return addresses there is led through ours.
 */
int libc_allows_guards(void);

/* A word of the main thread's stack that lies above all frames; the place where the kernel set the
 * stack pointer at the start, 0: not known. */
uintptr_t libc_stack_top(uintptr_t *entry);
/* Whether the array `environment` is still the one that the kernel made, with the auxiliary vector
 * behind it. The others are what a constructor was called with, if it is called with something. */
int libc_is_initial(char **environment, int argc, char **argv, char **envp);

/* The stack of a thread that pthread_create() makes. Asked for without its allocator, which the
 * program may have replaced: before, of its attributes (NULL: the default ones); then by the thread
 * itself, [low, high). 1; or 0: it may go on below `low`. -1: not known. */
struct libc_stack {
    uintptr_t low; /* where the program has given it; else 0 */
    size_t size;
};
void libc_plan_stack(const pthread_attr_t *attributes, struct libc_stack *stack);
int libc_own_stack(const struct libc_stack *planned, uintptr_t *low, uintptr_t *high);

/* The function of this name behind ours; NULL: there is none. May ask the loader, whose lock
 * another thread may have that waits for this one. */
void *libc_next(const char *name);
/* The same, once the allocator was found: what the C library has, it has without the loader. */
void *libc_function(const char *name);
/* Whether malloc (as libc_next() has it) is glibc's. */
int libc_is_glibc_malloc(const void *function);
/* Whether its blocks start as far apart as glibc's. */
int libc_spaces_blocks(const void *function);
/* Whether its system() and popen() end the shell's options ("sh -c -- COMMAND"); whether its
 * fclose() of what popen() opened waits for the shell, as pclose() does. */
int libc_ends_shell_options(void);
int libc_waits_at_fclose(void);
/* What its popen() says where the shell cannot be started, for this errno. */
int libc_popen_error(int error);
/* The path of the runtime's own file; NULL: it is part of the program. */
const char *libc_own_path(void);
/* Calls the function at the end of the process, after all destructors of the program, as far as the
 * C library lets us. */
void libc_at_end(void (*function)(void *unused));

#endif
