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
#include "runtime/reach/loader.h"
#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"
#include "runtime/follow/allocators.h"
#include "runtime/libc/objects.h"
#include "runtime/reach/inject.h"
#include "runtime/stack/guard.h"

#include <dlfcn.h>

static THREAD_LOCAL int closing; /* calls of dlclose that this thread is in */

static int injects(void) {
    return runtime_is_ready() && runtime.settings.inject;
}

/* --- which objects there are ------------------------------------------------------------------ */

/* The first that is new in the program's list, at whose end new ones stand; other namespaces are
 * few and short. */
static const struct link_map *first_new(const struct link_map *list) {
    const struct link_map *map = list;
    while (map != NULL && map != runtime.modules.noted) {
        map = map->l_next;
    }
    return map != NULL ? map->l_next : list;
}

static void note_list(const struct link_map *map, uint32_t begun) {
    for (; map != NULL; map = map->l_next) {
        module_note(&runtime.modules, (uintptr_t)map->l_ld, begun);
    }
}

static const struct link_map *last_of(const struct link_map *map) {
    while (map != NULL && map->l_next != NULL) {
        map = map->l_next;
    }
    return map;
}

/* Whoever holds the loader's lock does this. */
static void note_new(void *unused) {
    const struct r_debug *list = &_r_debug;
    uint32_t begun = runtime_is_ready() ? module_note_begin(&runtime.modules) : 0;
    (void)unused;
    if (begun == 0) {
        return;
    }
    note_list(first_new(list->r_map), begun);
    runtime.modules.noted = last_of(list->r_map);
    while ((list = objects_next_list(list)) != NULL) {
        note_list(list->r_map, begun);
    }
    module_note_end(&runtime.modules);
}

void loader_note_objects(void) {
    if (runtime_is_ready()) {
        objects_hold(note_new, NULL);
    }
}

/* --- what is gone ----------------------------------------------------------------------------- */

static void forget(void *rules, uintptr_t start, uintptr_t end) {
    rule_forget(rules, start, end);
}

static void sweep(void *unused) {
    uint64_t now;
    (void)unused;
    if (!runtime_is_ready()) { /* it was left while this thread waited for the loader */
        return;
    }
    now = sys_clock_ns(CLOCK_MONOTONIC) - runtime.space.header->start_monotonic_ns;
    module_sweep(&runtime.modules, now, forget, &runtime.rules);
    note_new(NULL);
}

static void forget_what_is_gone(void) {
    if (runtime_is_ready()) {
        objects_hold(sweep, NULL);
    }
}

static void inject_opened(void) {
    if (injects()) {
        inject_run();
    }
}

/* Whether something is to be done with what was opened. */
static int looks_at_opened(void) {
    return injects() || allocators_are_named();
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

/* 1: end_opening() is to be called. 0: nothing is named; or something that opens opens more. */
static int begin_opening(void) {
    if (!allocators_are_named() || !trylock_take(&before.lock)) {
        return 0;
    }
    before.count = 0;
    objects_visit(note_before, NULL);
    return 1;
}

static void add_object(void *unknown, struct link_map *map) {
    *(int *)unknown |= !was_there((uintptr_t)map->l_ld);
}

static void end_opening(void) {
    int is_more = 0;
    objects_visit(add_object, &is_more);
    if (is_more) {
        allocators_lead(was_there);
    }
    trylock_release(&before.lock);
}

/* A library that is bound at once has no words that the loader would fill in later. */
static int at_once(int mode) {
    return (mode & RTLD_LAZY) != 0 ? (mode & ~RTLD_LAZY) | RTLD_NOW : mode;
}

/* Where not we are to do something afterwards, the real function is entered by a jump: it looks at
 * who called it, for the run path and the namespace. */
PUBLIC void *dlopen(const char *file, int mode) {
    __auto_type real_open = REAL(dlopen);
    const void *caller = (const void *)guard_restore(MACHINE_FRAME());
    void *handle = NULL;
    int is_looked_at;
    forget_what_is_gone();
    if (LIKELY(!looks_at_opened())) {
        return real_open(file, mode);
    }
    if (!inject_may_open(file, caller)) {
        inject_opened(); /* of what came this way before */
        return real_open(file, mode);
    }
    is_looked_at = begin_opening();
    if ((mode & RTLD_DEEPBIND) != 0 && injects()) {
        handle = real_open(file, at_once(mode));
    }
    if (handle == NULL) {
        handle = real_open(file, mode);
    }
    inject_opened();
    if (is_looked_at) {
        end_opening();
    }
    return handle;
}

PUBLIC void *dlmopen(Lmid_t space, const char *file, int mode) {
    __auto_type real_open = REAL(dlmopen);
    const void *caller = (const void *)guard_restore(MACHINE_FRAME());
    void *handle;
    int is_looked_at;
    forget_what_is_gone();
    if (LIKELY(!looks_at_opened())) {
        return real_open(space, file, mode);
    }
    if (!inject_may_open(file, caller)) {
        inject_opened();
        return real_open(space, file, mode);
    }
    is_looked_at = begin_opening();
    handle = injects() ? real_open(space, file, at_once(mode)) : NULL;
    if (handle == NULL) {
        handle = real_open(space, file, mode);
    }
    inject_opened();
    if (is_looked_at) {
        end_opening();
    }
    return handle;
}

PUBLIC int dlclose(void *handle) {
    __auto_type real_close = REAL(dlclose);
    int result;
    loader_note_objects();
    closing++;
    result = real_close(handle);
    closing--;
    forget_what_is_gone();
    if (UNLIKELY(injects())) {
        inject_run();
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
    module_retire(&runtime.modules, (uintptr_t)object, forget, &runtime.rules);
}
