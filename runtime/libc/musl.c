/* SPDX-License-Identifier: MIT */
/*
 * musl.c: musl as a shared library, which is its loader as well. See libc.h.
 *
 * Its list of objects is read without its lock, which a handler may find taken by the thread that
 * it interrupted. That is right: objects are put at its end when they are whole, and stay for good.
 */
#define _GNU_SOURCE
#include "runtime/base/compiler.h"
#include "runtime/base/text.h"
#include "runtime/libc/elfobject.h"
#include "runtime/libc/musl_common.h"

#include <dlfcn.h>
#include <sys/auxv.h>

/* The loader's list, as it tells it to debuggers: by an entry of the program's dynamic section. */
static const struct r_debug *find_list(void) {
    static const struct r_debug *list;
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    size_t count = getauxval(AT_PHNUM);
    uintptr_t bias = elfobject_program_bias(header, count);
    for (size_t i = 0; i < count && list == NULL; i++) {
        const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(bias + header[i].p_vaddr);
        if (header[i].p_type != PT_DYNAMIC) {
            continue;
        }
        while (entry->d_tag != DT_NULL && entry->d_tag != DT_DEBUG) {
            entry++;
        }
        list = entry->d_tag == DT_DEBUG ? (const struct r_debug *)entry->d_un.d_ptr : NULL;
    }
    return list;
}

int libc_find_object(uintptr_t address, struct libc_object *object) {
    const struct r_debug *list = find_list();
    if (elfobject_find(address, object) == 0) {
        return 0;
    }
    for (const struct link_map *map = list != NULL ? list->r_map : NULL; map != NULL;
         map = LOAD_ACQUIRE(&map->l_next)) {
        /* Objects but the program begin with their ELF header. */
        if (map->l_prev != NULL && map->l_addr != 0 &&
            elfobject_at_holds(map->l_addr, address, object)) {
            object->name = map->l_name;
            return 0;
        }
    }
    return -1;
}

int libc_is_runtime(uintptr_t code, uintptr_t start, uintptr_t end) {
    (void)code;
    return (uintptr_t)libc_is_runtime - start < end - start;
}

uintptr_t libc_loader(void) {
    return 0;
}

int libc_may_keep_frame_pointers(uintptr_t pc) {
    static struct libc_object own;
    if (LOAD_ACQUIRE(&own.end) == 0) {
        struct libc_object found = {0};
        libc_find_object((uintptr_t)getauxval, &found);
        own.start = found.start;
        STORE_RELEASE(&own.end, found.end);
    }
    return pc - own.start >= own.end - own.start;
}

int libc_allows_guards(void) {
    return 0;
}

static void *find_next(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

/* What has another name there. */
void *libc_next(const char *name) {
    void *function = musl_replaced(name, find_next);
    return function != NULL ? function
                            : find_next(text_equal(name, "sysv_signal") ? "__sysv_signal" : name);
}

/* Its loader keeps no lock while constructors run. */
void *libc_function(const char *name) {
    return libc_next(name);
}

int libc_is_glibc_malloc(const void *function) {
    (void)function;
    return 0;
}

const char *libc_own_path(void) {
    Dl_info info;
    return dladdr((void *)libc_own_path, &info) != 0 ? info.dli_fname : NULL;
}

/* Exit handlers run before all destructors, and ours is the last of them: a library that needs no
 * other is set up first. */
static void (*at_end)(void *unused);

void libc_at_end(void (*function)(void *unused)) {
    at_end = function;
}

__attribute__((destructor)) static void musl_end(void) {
    if (at_end != NULL) {
        at_end(NULL);
    }
}
