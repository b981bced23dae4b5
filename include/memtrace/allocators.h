/* SPDX-License-Identifier: MIT */
/*
 * allocators.h: what the runtime and `memtrace allocators` agree on: the plan by which functions of
 * a program that allocate (--alloc) are led to the runtime.
 *
 * The runtime starts the command in the program's name, with what it has loaded; the command finds
 * the functions, reads their first instructions and writes a plan; the runtime carries it out. So
 * no decoder of instructions is in the program. All addresses are those of the running process.
 *
 *     memtrace allocators PID FILE ENTRIES SITES FIRST SPECIFICATIONS
 *
 * FILE is where the plan goes, which is there whole or not at all. ENTRIES: the three addresses of
 * a struct memtrace_allocator_entries, hexadecimal, with commas between. SITES: where the runtime's
 * sites lie, hexadecimal: number n is at SITES + (n << MEMTRACE_SITE_SHIFT). FIRST: the number of
 * the first that is free; a plus sign behind it: it has been asked before, so nothing is said of
 * what is not there. SPECIFICATIONS: those of --alloc (docs/allocators.md), one a line.
 *
 * Where a program is attached to (memtrace/attach.h), `memtrace attach` makes the plan by itself,
 * and writes it to where struct memtrace_led says; the runtime makes all ready but for the jumps,
 * which the command writes while all threads stand still. `memtrace detach` takes them away so.
 */
#ifndef MEMTRACE_ALLOCATORS_H
#define MEMTRACE_ALLOCATORS_H

#include "memtrace/signature.h"

#include <stdint.h>

#define MEMTRACE_PLAN_MAGIC "MTPLAN1"

enum {
    MEMTRACE_SITES = 1024,       /* at most, in a process */
    MEMTRACE_SITE_SHIFT = 8,     /* a site of the runtime is 256 bytes */
    MEMTRACE_PLAN_BLOCKS = 64,   /* at most, in a plan */
    MEMTRACE_PATCH_BYTES = 24,   /* at most, of one function */
    MEMTRACE_JUMP_BYTES = 5,     /* of what leads elsewhere, the first of them */
    MEMTRACE_PLAN_ROOM = 1 << 20 /* more than the largest plan */
};

/* One of the functions to which stubs lead. A stub begins with
 *     push %rbp; mov %rsp, %rbp; push %r11; movabs $SITE, %r11
 * where SITE is the address of the runtime's site. That of a function which allocates (kinds ALLOC,
 * ZALLOC: enter; REALLOC: resize) then jumps to the entry, which calls the function's moved
 * instructions (`original`) with all registers as they were, and returns to the caller itself. That
 * of others (leave) calls the entry, which comes back with all registers as they were, but r11;
 * then it pops r11 and rbp, and its moved instructions follow. */
struct memtrace_allocator_entries {
    uint64_t enter;
    uint64_t resize;
    uint64_t leave;
};

/* One function. */
struct memtrace_plan_site {
    uint64_t address;  /* where its bytes are replaced: behind an endbr64 */
    uint64_t original; /* its moved instructions, which then jump back behind what is replaced */
    uint32_t length;   /* of what is replaced */
    uint8_t old[MEMTRACE_PATCH_BYTES];
    uint8_t new[MEMTRACE_PATCH_BYTES];
    struct memtrace_allocator_signature signature;
    char pool[MEMTRACE_SITE_NAME]; /* its name; empty where it is_heap */
};

/* Memory near an object, free in the process when the plan was made: filled, then made executable.
 */
struct memtrace_plan_block {
    uint64_t address; /* of a page */
    uint64_t size;    /* whole pages */
    uint64_t at;      /* where its bytes begin in the plan's file */
};

/* The file: this, the blocks' bytes where they say. */
struct memtrace_plan {
    char magic[8];
    uint32_t site_count, block_count;
    struct memtrace_plan_block block[MEMTRACE_PLAN_BLOCKS];
    struct memtrace_plan_site site[]; /* site i is number FIRST + i of the runtime's */
};

/* Of a program that is attached to: what leads to a site, or did. Sites and what was mapped for
 * them stay as long as the process, since a thread may be inside; a function that is named again in
 * the same way has the same. */
struct memtrace_led_function {
    uint64_t address;   /* 0: there is none */
    uint32_t length;    /* of `old` */
    uint32_t is_wanted; /* its first bytes are to be those of `jump`; 0: of `old` */
    uint8_t old[MEMTRACE_PATCH_BYTES];
    uint8_t jump[MEMTRACE_JUMP_BYTES];
    struct memtrace_allocator_signature signature;
};

/* The library has one, by this name. All of it is zero before the program is attached to with
 * functions that are named. */
#define MEMTRACE_LED_NAME "memtrace_led"
struct memtrace_led {
    struct memtrace_allocator_entries entries; /* zeros: functions cannot be led on this machine */
    uint64_t sites;
    uint64_t functions; /* address of struct memtrace_led_function[MEMTRACE_SITES], by sites */
    uint64_t plan;      /* address of MEMTRACE_PLAN_ROOM bytes, where a plan is expected; 0: none */
    uint32_t count;     /* of sites in use: the number of the next one */
    uint32_t reserved;
};

#endif
