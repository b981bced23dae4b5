/* SPDX-License-Identifier: MIT */
/* glibc.c: glibc as a shared library. See libc.h. */
#define _GNU_SOURCE
#include "runtime/base/text.h"
#include "runtime/libc/libc.h"
#include "runtime/libc/objects.h"
#include "runtime/machine/machine.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

extern void *__libc_stack_end; /* where the main thread's stack began */
extern int __cxa_atexit(void (*function)(void *), void *argument, void *object);

int libc_find_object(uintptr_t address, struct libc_object *object) {
    struct dl_find_object found;
    if (_dl_find_object((void *)address, &found) != 0) {
        return -1;
    }
    *object = (struct libc_object){.start = (uintptr_t)found.dlfo_map_start,
                                   .end = (uintptr_t)found.dlfo_map_end,
                                   .bias = found.dlfo_link_map->l_addr,
                                   .eh_frame_header = found.dlfo_eh_frame,
                                   .name = found.dlfo_link_map->l_name};
#if DLFO_STRUCT_HAS_EH_COUNT
    object->unwind_entries = (size_t)found.dlfo_eh_count;
#endif
    return 0;
}

int libc_is_runtime(uintptr_t code, uintptr_t start, uintptr_t end) {
    (void)code;
    return (uintptr_t)libc_is_runtime - start < end - start;
}

/* Started as a command, the loader has no base of its own to tell. */
uintptr_t libc_loader(void) {
    return getauxval(AT_BASE) != 0 ? getauxval(AT_BASE) : (uintptr_t)_dl_find_object;
}

int libc_allows_guards(void) {
    return 1;
}

uintptr_t libc_stack_top(uintptr_t *entry) {
    *entry = (uintptr_t)__libc_stack_end;
    return (uintptr_t)__libc_stack_end;
}

int libc_is_initial(char **environment, int argc, char **argv, char **envp) {
    return environment == envp && envp == argv + argc + 1;
}

void *libc_next(const char *name) {
    void *found = objects_next(name);
    return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

/* Behind us is nothing where we were opened later. */
void *libc_function(const char *name) {
    const struct link_map *libc = objects_libc();
    void *found = objects_next(name);
    if (found == NULL && libc != NULL) {
        found = objects_function(libc, name);
    }
    return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

/* By the base name of the file that it lies in. */
int libc_is_glibc_malloc(const void *function) {
    const struct link_map *map = objects_at(function);
    return map != NULL && objects_is_libc(map);
}

/* (Its own with more checks has the same blocks.) */
int libc_spaces_blocks(const void *function) {
    const struct link_map *map = objects_at(function);
    return map != NULL && (objects_is_libc(map) ||
                           text_equal(text_base_name(map->l_name), "libc_malloc_debug.so.0"));
}

const char *libc_own_path(void) {
    const struct link_map *map = objects_at((void *)libc_own_path);
    return map != NULL ? map->l_name : NULL;
}

/* An exit handler that is registered before the loader's own runs after every destructor. */
void libc_at_end(void (*function)(void *unused)) {
    __cxa_atexit(function, NULL, NULL);
}
