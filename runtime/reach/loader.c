/* SPDX-License-Identifier: MIT */
/*
 * loader.c: what loads and unloads code. Objects are found by address when they first appear in a
 * backtrace, so that opening one needs nothing, MEMTRACE_INJECT and MEMTRACE_ALLOC apart; all
 * others are noted before the next one is opened or closed. After a close addresses may mean other
 * code. What is known of an object is forgotten when its last destructor has run, since another
 * thread may load something to its place before dlclose is back; and after dlclose whatever did not
 * say so. A close that we did not see (by the C library itself, by a library in another namespace)
 * is noticed before the program opens the next thing.
 */
#define _GNU_SOURCE
#include "runtime/reach/reach.h"

#include "runtime/base/sys.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"
#include "runtime/follow/allocators.h"
#include "runtime/libc/objects.h"
#include "runtime/stack/guard.h"

#include <dlfcn.h>

static THREAD_LOCAL int closing; /* calls of dlclose that this thread is in */

static int loader_injects(void) {
    return runtime_is_ready() && runtime.settings.inject;
}

/* --- which objects there are ------------------------------------------------------------------ */

/* Whoever holds the loader's lock does this. What is new in the program's list stands at its end;
 * other namespaces are few and short. */
static void loader_note_new(void *unused) {
    const struct r_debug *list = &_r_debug;
    const struct link_map *map = list->r_map;
    uint32_t begun = runtime_is_ready() ? module_note_begin(&runtime.modules) : 0;
    (void)unused;
    if (begun == 0) {
        return;
    }
    while (map != NULL && map != runtime.modules.noted) {
        map = map->l_next;
    }
    map = map != NULL ? map->l_next : list->r_map;
    for (; map != NULL; map = map->l_next) {
        module_note(&runtime.modules, (uintptr_t)map->l_ld, begun);
        runtime.modules.noted = map;
    }
    while ((list = objects_next_list(list)) != NULL) {
        for (map = list->r_map; map != NULL; map = map->l_next) {
            module_note(&runtime.modules, (uintptr_t)map->l_ld, begun);
        }
    }
    module_note_end(&runtime.modules);
}

void loader_note_objects(void) {
    if (runtime_is_ready()) {
        objects_hold(loader_note_new, NULL);
    }
}

/* --- what is gone ----------------------------------------------------------------------------- */

static void loader_forget(void *rules, uintptr_t start, uintptr_t end) {
    rule_forget(rules, start, end);
}

static void loader_sweep(void *unused) {
    uint64_t now;
    (void)unused;
    if (!runtime_is_ready()) { /* it was left while this thread waited for the loader */
        return;
    }
    now = sys_clock_ns(CLOCK_MONOTONIC) - runtime.space.header->start_monotonic_ns;
    module_sweep(&runtime.modules, now, loader_forget, &runtime.rules);
    loader_note_new(NULL);
}

static void forget_what_is_gone(void) {
    if (runtime_is_ready()) {
        objects_hold(loader_sweep, NULL);
    }
}

/* --- functions that allocate, in what is opened ------------------------------------------------
 *
 * Their code is changed, so nobody may run it meanwhile: in what is just being opened no other
 * thread does. What came where we cannot look afterwards is led only while there is one thread. */

enum { OBJECTS = 2048 };
static struct {
    struct trylock lock; /* whoever holds it opens something */
    const void *dynamic[OBJECTS];
    uint32_t count;
} before;

static void note_before(void *unused, struct link_map *map) {
    (void)unused;
    if (before.count < OBJECTS) {
        before.dynamic[before.count++] = map->l_ld;
    }
}

static int was_there(uintptr_t address) {
    const struct link_map *object = objects_at((const void *)address);
    if (object == NULL || before.count == OBJECTS) {
        return 1;
    }
    for (uint32_t i = 0; i < before.count; i++) {
        if (before.dynamic[i] == object->l_ld) {
            return 1;
        }
    }
    return 0;
}

static void add_object(void *unknown, struct link_map *map) {
    *(int *)unknown |= !was_there((uintptr_t)map->l_ld);
}

/* Whether something is to be done with what is opened, and we may open it. */
static int looks_at_opened(const char *file, const void *caller) {
    if (LIKELY(!loader_injects() && !allocators_are_named())) {
        return 0;
    }
    if (rebind_may_open(file, caller)) {
        return 1;
    }
    if (loader_injects()) {
        rebind_inject(); /* of what came this way before */
    }
    return 0;
}

/* What dlmopen or (in_space: 0) dlopen is asked for. Where allocators are injected that are bound
 * by themselves, it is bound at once, if it can be: then it has no words that the loader would fill
 * in later. */
static void *open_and_look(int in_space, Lmid_t space, const char *file, int mode) {
    __auto_type open_in = REAL(dlmopen);
    __auto_type open_here = REAL(dlopen);
    /* 0: nothing is named; or something that opens opens more. */
    int is_looked_at = allocators_are_named() && trylock_take(&before.lock);
    int by_itself = in_space || (mode & RTLD_DEEPBIND) != 0;
    void *handle = NULL;
    if (is_looked_at) {
        before.count = 0;
        objects_visit(note_before, NULL);
    }
    if (by_itself && loader_injects()) {
        int at_once = (mode & RTLD_LAZY) != 0 ? (mode & ~RTLD_LAZY) | RTLD_NOW : mode;
        handle = in_space ? open_in(space, file, at_once) : open_here(file, at_once);
    }
    if (handle == NULL) {
        handle = in_space ? open_in(space, file, mode) : open_here(file, mode);
    }
    if (loader_injects()) {
        rebind_inject();
    }
    if (is_looked_at) {
        int is_more = 0;
        objects_visit(add_object, &is_more);
        if (is_more) {
            allocators_lead(was_there);
        }
        trylock_release(&before.lock);
    }
    return handle;
}

/* Where not we are to do something afterwards, the real function is entered by a jump: it looks at
 * who called it, for the run path and the namespace. */
PUBLIC void *dlopen(const char *file, int mode) {
    __auto_type real_open = REAL(dlopen);
    const void *caller = (const void *)guard_restore(MACHINE_FRAME());
    forget_what_is_gone();
    return looks_at_opened(file, caller) ? open_and_look(0, 0, file, mode) : real_open(file, mode);
}

PUBLIC void *dlmopen(Lmid_t space, const char *file, int mode) {
    __auto_type real_open = REAL(dlmopen);
    const void *caller = (const void *)guard_restore(MACHINE_FRAME());
    forget_what_is_gone();
    return looks_at_opened(file, caller) ? open_and_look(1, space, file, mode)
                                         : real_open(space, file, mode);
}

PUBLIC int dlclose(void *handle) {
    __auto_type real_close = REAL(dlclose);
    int result;
    loader_note_objects();
    closing++;
    result = real_close(handle);
    closing--;
    forget_what_is_gone();
    if (UNLIKELY(loader_injects())) {
        rebind_inject();
    }
    return result;
}

/* The compiler's start files make every object call this after its other destructors, with an
 * address of its own. (Those with a priority come still later.) At exit nothing is unmapped. */
PUBLIC void __cxa_finalize(void *object);
PUBLIC void __cxa_finalize(void *object) {
    real_ensure();
    real.__cxa_finalize(object);
    if (closing == 0 || !runtime_is_ready()) {
        return;
    }
    module_retire(&runtime.modules, (uintptr_t)object, loader_forget, &runtime.rules);
}

/* --- dlsym and dlvsym, which are ours ----------------------------------------------------------
 *
 * For the entries in runtime/machine: the real ones. The C library's dlvsym, out of its own table,
 * finds what is next. */

void *real_dlsym;
void *real_dlvsym;
void *real_find_dlsym(void);
void *real_find_dlvsym(void);

static void *loader_next_symbol(const char *name) {
    typedef void *find_function(void *handle, const char *name, const char *version);
    const struct link_map *libc = objects_libc();
    find_function *find = libc != NULL ? (find_function *)objects_symbol(libc, "dlvsym") : NULL;
    return find != NULL ? find(RTLD_NEXT, name, MACHINE_FIRST_GLIBC) : NULL;
}

void *real_find_dlsym(void) {
    real_dlsym = loader_next_symbol("dlsym");
    return real_dlsym;
}

void *real_find_dlvsym(void) {
    real_dlvsym = loader_next_symbol("dlvsym");
    return real_dlvsym;
}
