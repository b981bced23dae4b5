/* SPDX-License-Identifier: MIT */
/*
 * static.c: a program that is linked statically. See libc.h.
 *
 * The linker leads what the program and the C library call by name to us (--wrap, the names are in
 * wrapped.txt), and us to the functions behind. There is one object, of which our code is a section
 * of its own.
 */
#define _GNU_SOURCE
#include "runtime/libc/static.h"

#include "runtime/base/text.h"
#include "runtime/libc/elfobject.h"

int libc_find_object(uintptr_t address, struct libc_object *object) {
    return elfobject_find(address, object);
}

/* Bounds that the linker makes of the section's name. */
extern const char __start_memtrace_text[], __stop_memtrace_text[];

int libc_is_runtime(uintptr_t code, uintptr_t start, uintptr_t end) {
    (void)start, (void)end;
    return code - (uintptr_t)__start_memtrace_text <
           (uintptr_t)__stop_memtrace_text - (uintptr_t)__start_memtrace_text;
}

uintptr_t libc_loader(void) {
    return 0;
}

int libc_allows_guards(void) {
    return 0;
}

void *static_find(const char *name) {
    for (const struct static_function *at = static_functions; at->name != NULL; at++) {
        if (text_equal(at->name, name)) {
            return at->function;
        }
    }
    return NULL;
}

void *libc_function(const char *name) {
    return libc_next(name);
}

const char *libc_own_path(void) {
    return NULL;
}

/* The process ends by _exit() or _Exit(), which exit() calls after all handlers and destructors:
 * also there they are ours. */
void libc_at_end(void (*function)(void *unused)) {
    (void)function;
}
