/* SPDX-License-Identifier: MIT */
/*
 * without_glibc.c: what is not there where the C library is not glibc as a shared library, for the
 * rest of the runtime: attaching to a program that runs, looking for another malloc, libunwind.
 */
#include "runtime/entry/othermalloc.h"
#include "runtime/libc/objects.h"
#include "runtime/reach/reach.h"
#include "runtime/stack/libunwind.h"

int attach_is_coming(void) {
    return 0;
}

int attach_is_collected(void) {
    return 0;
}

void loader_note_objects(void) {
}

void othermalloc_look(struct memtrace_malloc *found) {
    *found = (struct memtrace_malloc){0};
}

int othermalloc_calls_next(const char *executable) {
    (void)executable;
    return 0;
}

void othermalloc_warn(const struct memtrace_malloc *found, const char *executable) {
    (void)found, (void)executable;
}

const struct libunwind *libunwind_load(void) {
    return NULL;
}

int libunwind_calls(const struct libunwind *libunwind, uintptr_t slot) {
    (void)libunwind, (void)slot;
    return 0;
}

int libunwind_start(const struct libunwind *libunwind, struct libunwind_walk *walk, uintptr_t sp) {
    (void)libunwind, (void)walk, (void)sp;
    return -1;
}

int libunwind_step(const struct libunwind *libunwind, struct libunwind_walk *walk) {
    (void)libunwind, (void)walk;
    return 0;
}

void *objects_nearer(const char *name, void *next) {
    (void)name;
    return next;
}
