/* SPDX-License-Identifier: MIT */
/*
 * real.h: the functions behind ours, found once with dlsym(RTLD_NEXT). While they are looked up
 * dlsym itself may allocate: such requests are served from a small static arena and never freed.
 */
#ifndef RUNTIME_ENTRY_REAL_H
#define RUNTIME_ENTRY_REAL_H

#include "memtrace/blocks.h"
#include "runtime/base/compiler.h"
#include "runtime/machine/machine.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sigaction;

HIDDEN void *malloc_slow(size_t size); /* malloc.h */
HIDDEN void free_slow(void *pointer);

/* The malloc family but for free: `what` is done with the name of each. */
#define REAL_FAMILY(what, ...)                                                                     \
    what(calloc, __VA_ARGS__) what(malloc, __VA_ARGS__) what(realloc, __VA_ARGS__)                 \
        what(posix_memalign, __VA_ARGS__) what(aligned_alloc, __VA_ARGS__)                         \
            what(memalign, __VA_ARGS__) what(valloc, __VA_ARGS__) what(pvalloc, __VA_ARGS__)

struct real {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    int (*munmap)(void *, size_t);
    void *(*mremap)(void *, size_t, size_t, int, ...);
    void *(*sbrk)(intptr_t);
    int (*brk)(void *);
    pid_t (*fork)(void);
    void (*_exit)(int status);
    pid_t (*_Fork)(void);
    void (*__cxa_finalize)(void *);
    int (*sigaction)(int, const struct sigaction *, struct sigaction *);
    void (*(*signal)(int, void (*)(int)))(int);
    void (*(*sysv_signal)(int, void (*)(int)))(int);
    size_t small_limit; /* malloc() of less is counted by fast.c, if nothing is unusual */
    /* Who does all others: malloc_prepare(); and who frees addresses from real_free_limit on. As
     * distances from malloc_slow and free_slow, so that these do before the loader has relocated
     * us: an ifunc's resolver may allocate. */
    intptr_t other_malloc, other_free;
    int is_glibc; /* malloc is the C library's own */
    int pads;     /* its blocks may start less than 32 bytes apart: see malloc.c */
};

extern HIDDEN struct real real;

INLINE void *real_other_malloc(size_t size) {
    uintptr_t function = (uintptr_t)malloc_slow + (uintptr_t)real.other_malloc;
    return ((void *(*)(size_t))function)(size);
}

INLINE void real_other_free(void *pointer) {
    uintptr_t function = (uintptr_t)free_slow + (uintptr_t)real.other_free;
    ((void (*)(void *))function)(pointer);
}

/* glibc's blocks start at least 32 bytes apart, as the shadow heap wants it, and so do
 * AddressSanitizer's with the 16 bytes in front of each; those of allocators with finer size
 * classes do not, so their tiny requests are made larger: by real.malloc itself, else by malloc.c.
 */
enum { REAL_PADDED = 32, REAL_SMALL = 1 << MEMTRACE_COARSE_SHIFT };

/* Fills `real`; a nested call (from dlsym) returns at once with what there is, and so does one
 * before the loader has relocated us and has set up the thread's storage. */
void real_find(void);
INLINE void real_ensure(void) {
    if (UNLIKELY(real.free == NULL)) {
        real_find();
    }
}

/* MEMTRACE_ZERO=1: what is allocated is zero from here on, so that a program that reads what it
 * never wrote does the same each time. What the other functions of this runtime call costs nothing
 * more without it. */
void real_zero(void);

/* Those that are rarely wanted, one by one. NULL: not there. */
void *real_symbol(const char *name);

/* The function of this name behind ours, by a search at its first use. */
#define REAL_BY(search, name)                                                                      \
    ({                                                                                             \
        static __typeof__(&(name)) real_;                                                          \
        if (UNLIKELY(LOAD_RELAXED(&real_) == NULL)) {                                              \
            STORE_RELAXED(&real_, (__typeof__(real_))(search));                                    \
        }                                                                                          \
        LOAD_RELAXED(&real_);                                                                      \
    })
#define REAL(name) REAL_BY(real_symbol(#name), name)

void *real_early_alloc(size_t size, size_t alignment);

enum { REAL_EARLY_BYTES = 64 * 1024 };
/* free() of what lies below is counted by fast.c, if nothing is unusual: of all addresses, or of
 * none. */
#define REAL_ADDRESSES (UINTPTR_MAX >> (8 * sizeof(uintptr_t) - MACHINE_ADDRESS_BITS))
extern HIDDEN uintptr_t real_free_limit;

extern HIDDEN unsigned char real_early[REAL_EARLY_BYTES];

INLINE int real_is_early(const void *pointer) {
    return (uintptr_t)pointer - (uintptr_t)real_early < REAL_EARLY_BYTES;
}

size_t real_early_size(const void *pointer);

#endif
