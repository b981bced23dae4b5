/* SPDX-License-Identifier: MIT */
/*
 * loader.c: what loads and unloads code. Objects are found by address when they first appear in a
 * backtrace, so that opening one needs nothing, MEMTRACE_INJECT and MEMTRACE_ALLOC apart; after a
 * close addresses may mean other code. What is known of an object is forgotten when its last
 * destructor has run, since another thread may load something to its place before dlclose is back;
 * and after dlclose whatever did not say so. A close that we did not see (by the C library itself,
 * by a library in another namespace) is noticed before the program opens the next thing.
 */
#define _GNU_SOURCE
#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/entry/allocators.h"
#include "runtime/entry/inject.h"
#include "runtime/entry/objects.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"
#include "runtime/stack/guard.h"

#include <dlfcn.h>

static THREAD_LOCAL int closing; /* calls of dlclose that this thread is in */

static int injects(void) {
    return runtime_is_ready() && runtime.settings.inject;
}

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
}

static void forget_what_is_gone(void) {
    if (runtime_is_ready()) {
        objects_hold(sweep, NULL);
    }
}

/* Whether something is to be done with what was opened. */
static int looks_at_opened(void) {
    return injects() || allocators_are_named();
}

/* Another number where other objects are there. */
static void add_object(void *sum, struct link_map *map) {
    *(uint64_t *)sum = *(uint64_t *)sum * 31 + (uintptr_t)map->l_ld;
}

/* By now, or before what a jump goes on to open. */
static void look_at_opened(void) {
    static uint64_t seen;
    uint64_t sum = 0;
    if (injects()) {
        inject_run();
    }
    if (allocators_are_named()) {
        objects_visit(add_object, &sum);
        if (__atomic_exchange_n(&seen, sum, __ATOMIC_RELAXED) != sum) {
            allocators_lead();
        }
    }
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
    forget_what_is_gone();
    if (LIKELY(!looks_at_opened())) {
        return real_open(file, mode);
    }
    if (!inject_may_open(file, caller)) {
        look_at_opened(); /* of what came this way before */
        return real_open(file, mode);
    }
    if ((mode & RTLD_DEEPBIND) != 0 && injects()) {
        handle = real_open(file, at_once(mode));
    }
    if (handle == NULL) {
        handle = real_open(file, mode);
    }
    look_at_opened();
    return handle;
}

PUBLIC void *dlmopen(Lmid_t space, const char *file, int mode) {
    __auto_type real_open = REAL(dlmopen);
    const void *caller = (const void *)guard_restore(MACHINE_FRAME());
    void *handle;
    forget_what_is_gone();
    if (LIKELY(!looks_at_opened())) {
        return real_open(space, file, mode);
    }
    if (!inject_may_open(file, caller)) {
        look_at_opened();
        return real_open(space, file, mode);
    }
    handle = injects() ? real_open(space, file, at_once(mode)) : NULL;
    if (handle == NULL) {
        handle = real_open(space, file, mode);
    }
    look_at_opened();
    return handle;
}

PUBLIC int dlclose(void *handle) {
    __auto_type real_close = REAL(dlclose);
    int result;
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
    __auto_type real_finalize = REAL(__cxa_finalize);
    if (closing == 0 || !runtime_is_ready()) {
        real_finalize(object);
        return;
    }
    real_finalize(object);
    module_retire(&runtime.modules, (uintptr_t)object, forget, &runtime.rules);
}
