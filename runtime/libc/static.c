/* SPDX-License-Identifier: MIT */
/*
 * static.c: a program that is linked statically and holds glibc or musl. See libc.h.
 *
 * The linker leads what the program and the C library call by name to us (--wrap, the names are in
 * wrapped.txt), and us to the functions behind. There is one object, of which our code is a section
 * of its own.
 */
#define _GNU_SOURCE
#include "runtime/libc/static.h"

#include "runtime/base/text.h"
#include "runtime/libc/elfobject.h"
#include "runtime/libc/musl_common.h"

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

static void *static_find(const char *name) {
    for (const struct static_function *at = static_functions; at->name != NULL; at++) {
        if (text_equal(at->name, name)) {
            return at->function;
        }
    }
    return NULL;
}

#ifdef __GLIBC__
/* Not there where the program brings an allocator of its own. */
extern void *__libc_malloc(size_t size) __attribute__((weak));

void *libc_next(const char *name) {
    return static_find(name);
}

int libc_is_glibc_malloc(const void *function) {
    return function == (void *)__libc_malloc;
}

int libc_spaces_blocks(const void *function) {
    return libc_is_glibc_malloc(function);
}
#else
void *libc_next(const char *name) {
    void *function = musl_replaced(name, static_find);
    return function != NULL ? function : static_find(name);
}

int libc_is_glibc_malloc(const void *function) {
    (void)function;
    return 0;
}

/* musl's functions do not, and lie among the program's. */
int libc_may_keep_frame_pointers(uintptr_t pc) {
    (void)pc;
    return 0;
}
#endif

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
