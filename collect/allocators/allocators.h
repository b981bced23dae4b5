/* SPDX-License-Identifier: MIT */
/*
 * allocators.h: functions of a program that allocate (--alloc): which there are, which can be led
 * to the runtime, and the plan for that (memtrace/allocators.h).
 *
 * Called by cli/allocators.c, for the runtime and for people, and by collect/attach. Without Zydis
 * allocatorsnone.c stands for all of it.
 */
#ifndef COLLECT_ALLOCATORS_ALLOCATORS_H
#define COLLECT_ALLOCATORS_ALLOCATORS_H

#include "collect/allocators/allocspec.h"
#include "memtrace/allocators.h"

#include <sys/types.h>

struct allocators_request {
    pid_t pid;
    const char *file; /* where the plan goes; NULL: to fd */
    int fd;           /* -1: nowhere, it is only asked whether there can be one */
    struct memtrace_allocator_entries entries;
    uint64_t sites;
    uint32_t first;
    bool is_again;   /* it has been asked before: only what has come since matters, and nothing is
                        said of what is not there, or cannot be followed */
    bool is_at_work; /* other threads run: what is replaced has to lie in one page */
    const char *specifications; /* one a line */
    /* Told of each function of the plan, unless NULL: where its bytes are replaced, and its name.
     */
    void (*took)(void *context, uint64_t address, const char *name);
    void *context;
    void (*tell)(const char *line);
};

/* Writes the plan. 0, or -1: there is none. What is left out is told. */
int allocators_plan(const struct allocators_request *request, struct error *error);

/* A function of a file, for who asks what could be followed. */
struct allocators_row {
    const char *function; /* as programmers write it */
    const char *set;      /* the ready-made one that has it; else NULL */
    const char *what;     /* "alloc"; NULL: nobody named it, it is just there */
    uint64_t address;     /* in the file's terms */
    uint32_t length;      /* of what would be replaced; 0: it cannot be */
    const char *why;      /* it cannot; NULL: it can */
};

struct allocators_listing {
    const char *path;
    struct allocspecs *specs; /* none: those of all sets that the file shows are added */
    bool all;                 /* each function of the file */
    void (*row)(void *context, const struct allocators_row *row);
    void *context;
    void (*tell)(const char *line);
};

/* 0, or -1: the file cannot be read, or functions cannot be patched at all. */
int allocators_list(const struct allocators_listing *listing, struct error *error);

#endif
