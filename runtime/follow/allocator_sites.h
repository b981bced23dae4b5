/* SPDX-License-Identifier: MIT */
/*
 * allocator_sites.h: which functions of the program lead to us, by plans that the command has made
 * (memtrace/allocators.h).
 *
 * In a program that was started with us, and in libraries that are opened, we replace their first
 * bytes ourselves, while nobody runs them. Where we were attached the command does that, which
 * holds all threads: here all is made ready for it, and told by memtrace_led.
 *
 * Called by allocators.c, by one thread at a time.
 */
#ifndef RUNTIME_FOLLOW_ALLOCATOR_SITES_H
#define RUNTIME_FOLLOW_ALLOCATOR_SITES_H

#include "memtrace/allocators.h"
#include "runtime/follow/allocator_call.h"

union site_place {
    struct allocator_site site;
    char bytes[1 << MEMTRACE_SITE_SHIFT];
};
_Static_assert(sizeof(struct allocator_site) <= sizeof(union site_place), "a site has its place");

extern union site_place *sites; /* mapped when functions are named: few programs have any */
extern uint32_t site_count;

/* 0, or -1: no memory. */
int sites_make(void);

struct plan {
    const struct memtrace_plan *head;
    uint64_t size;
    int is_alone;
    int is_of_command;                 /* which writes the jumps, while nobody runs */
    int (*may_run)(uintptr_t address); /* asked where we are not alone; NULL: any code may run */
};
int sites_plan_is_sound(const struct plan *plan);
/* 0, or -1: there is no room for its code. */
int sites_carry_out(const struct plan *plan);

/* --- where we are attached -------------------------------------------------------------------- */

/* Makes room for a plan, and says where. 0, or -1: no memory. */
int sites_expect(void);
/* Whether there is room for one that has not come. */
int sites_are_expected(void);
/* Makes ready what it says. 0, or -1: there is none, or no room for its code. */
int sites_follow(void);
/* The runtime has left: nothing is to be led to it. */
void sites_forget(void);
int site_is_wanted(uint32_t number);

#endif
