/* SPDX-License-Identifier: MIT */
/* dlsym.c: what dlsym and dlvsym, which are ours, are behind them; and the unwinder's functions.
 * For glibc as a shared library. */
#define _GNU_SOURCE
#include "runtime/entry/real.h"
#include "runtime/libc/objects.h"
#include "runtime/machine/machine.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>

/* For the entries in runtime/machine: the real ones. The C library's dlvsym, out of its own table,
 * finds what is next. */
typedef void *find_function(void *handle, const char *name, const char *version);

void *real_dlsym;
void *real_dlvsym;
void *real_find_dlsym(void);
void *real_find_dlvsym(void);

static void *next_symbol(const char *name) {
    const struct link_map *libc = objects_libc();
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
