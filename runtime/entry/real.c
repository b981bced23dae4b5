/* SPDX-License-Identifier: MIT */
/* real.c: finding the functions behind ours. See real.h. */
#define _GNU_SOURCE
#include "runtime/entry/real.h"

#include "memtrace/format.h"
#include "runtime/base/text.h"
#include "runtime/entry/malloc.h"
#include "runtime/entry/objects.h"
#include "runtime/entry/othermalloc.h"
#include "runtime/machine/machine.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <gnu/libc-version.h>

struct real real = {.other_malloc = malloc_slow, .other_free = free_slow};
uintptr_t real_free_limit = REAL_ADDRESSES;
static void *(*malloc_unpadded)(size_t);

enum { EARLY_HEADER = 16 };

_Alignas(64) unsigned char real_early[REAL_EARLY_BYTES];
static size_t early_used;
static int finding;

void *real_early_alloc(size_t size, size_t alignment) {
    size_t used = __atomic_load_n(&early_used, __ATOMIC_RELAXED);
    size_t start;
    if (alignment < EARLY_HEADER) {
        alignment = EARLY_HEADER;
    }
    do {
        start = (used + EARLY_HEADER + alignment - 1) & ~(alignment - 1);
        if (alignment > 4096 || size > REAL_EARLY_BYTES || start + size > REAL_EARLY_BYTES) {
            return NULL;
        }
    } while (!__atomic_compare_exchange_n(&early_used, &used, start + size, 0, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    *(size_t *)(void *)(real_early + start - EARLY_HEADER) = size;
    return real_early + start;
}

size_t real_early_size(const void *pointer) {
    return *(const size_t *)(const void *)((const unsigned char *)pointer - EARLY_HEADER);
}

/* For the entries in runtime/machine: the real ones. The C library's dlvsym, out of its own table,
 * finds what is next. */
typedef void *find_function(void *handle, const char *name, const char *version);

void *real_dlsym;
void *real_dlvsym;
void *real_find_dlsym(void);
void *real_find_dlvsym(void);

static void *next_symbol(const char *name) {
    const struct link_map *libc = objects_at((void *)gnu_get_libc_version);
    find_function *find = libc != NULL ? (find_function *)objects_symbol(libc, "dlvsym") : NULL;
    return find != NULL ? find(RTLD_NEXT, name, MACHINE_FIRST_GLIBC) : NULL;
}

void *real_find_dlsym(void) {
    real_dlsym = next_symbol("dlsym");
    return real_dlsym;
}

void *real_find_dlvsym(void) {
    real_dlvsym = next_symbol("dlvsym");
    return real_dlvsym;
}

void *real_symbol(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

/* As the loader would have found it: in the global scope, else in that of the object that calls. */
void *real_unwinder_symbol(const char *name, const void *caller) {
    void *function = real_symbol(name);
    struct link_map *object = objects_at(caller);
    if (function == NULL && object != NULL) {
        function = dlsym(object, name);
        if (function != NULL && objects_at(function) == objects_at((void *)real_unwinder_symbol)) {
            function = NULL; /* the program's own scope has us in front */
        }
    }
    if (function == NULL) {
        void *library = dlopen(LIBGCC_S_SO, RTLD_LAZY | RTLD_NOLOAD);
        function = library != NULL ? dlsym(library, name) : NULL;
    }
    return function;
}

/* The base name of the file that this function lies in; "": not known. */
static const char *file_of(const void *function) {
    Dl_info info;
    int found = dladdr(function, &info) != 0 && info.dli_fname != NULL;
    return found ? text_base_name(info.dli_fname) : "";
}

static void *malloc_padded(size_t size) {
    return malloc_unpadded(size < REAL_PADDED ? REAL_PADDED : size);
}

#define FIND(name) real.name = real_symbol(#name)

void real_find(void) {
    if (finding) {
        return;
    }
    finding = 1;
    FIND(calloc);
    FIND(malloc);
    FIND(realloc);
    FIND(posix_memalign);
    FIND(aligned_alloc);
    FIND(memalign);
    FIND(valloc);
    FIND(pvalloc);
    FIND(malloc_usable_size);
    FIND(mmap);
    FIND(munmap);
    FIND(mremap);
    FIND(sbrk);
    FIND(brk);
    FIND(fork);
    FIND(_exit);
    FIND(_Fork);
    FIND(sigaction);
    FIND(signal);
    FIND(sysv_signal);
    real.is_glibc = text_equal(file_of((void *)real.malloc), LIBC_SO);
    real.pads = !real.is_glibc && __asan_init == NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (real.pads) {
        malloc_unpadded = real.malloc;
        real.malloc = malloc_padded;
    }
    malloc_prepare(MALLOC_EXACT);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    FIND(free); /* last: its presence says that all are there */
    finding = 0;
}
