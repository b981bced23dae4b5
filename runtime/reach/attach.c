/* SPDX-License-Identifier: MIT */
/* attach.c: coming up in a program that runs, and leaving it. See attach.h. */
#define _GNU_SOURCE
#include "runtime/reach/attach.h"

#include "memtrace/attach.h"
#include "memtrace/seccomp.h"
#include "runtime/base/compiler.h"
#include "runtime/base/sandbox.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/othermalloc.h"
#include "runtime/entry/quiescence.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/thread.h"
#include "runtime/follow/allocators.h"
#include "runtime/libc/objects.h"
#include "runtime/reach/loader.h"

#include <malloc.h>

enum { SETTINGS = 64, FIRST_LOOK_NS = 10000000, SECOND_LOOK_NS = 100000000 };
#define SHORT_WAIT_NS UINT64_C(200000000)
#define LONG_WAIT_NS  UINT64_C(15000000000)

static WRITTEN_BY_CHILDREN uint32_t is_over; /* the program ends */
static uint32_t is_collected;

int attach_is_coming(void) {
    char name[16];
    sys_thread_name(name);
    return text_equal(name, MEMTRACE_ATTACH_THREAD);
}

int attach_is_collected(void) {
    return LOAD_RELAXED(&is_collected) != 0;
}

static void split(const char *settings, char *array[SETTINGS + 1]) {
    size_t count = 0;
    for (; *settings != '\0' && count < SETTINGS; settings += text_length(settings) + 1) {
        array[count++] = (char *)settings;
    }
    array[count] = NULL;
}

/* Words that the loader was about to bind when they were led have been bound since. */
static void lead_all(void) {
    attach_lead();
    sys_sleep_ns(FIRST_LOOK_NS);
    attach_lead();
    sys_sleep_ns(SECOND_LOOK_NS);
    attach_lead();
}

/* --- one at a time ---------------------------------------------------------------------------- */

/* The process in which a thread of ours is at work: a forked child may find its parent's. */
static uint32_t busy;

static int begin_work(void) {
    uint32_t pid = sys_getpid();
    uint32_t before = LOAD_RELAXED(&busy);
    return before != pid &&
           __atomic_compare_exchange_n(&busy, &before, pid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static int end_work(int result) {
    STORE_RELEASE(&busy, 0u);
    return result;
}

/* --- coming ----------------------------------------------------------------------------------- */

static void forget(void *unused) {
    (void)unused;
    runtime_forget();
}

/* Gives back what the runtime has left, as soon as no thread can be inside it. No thread is about
 * to look at a table that the loader let it wait for. 0, or -1: some thread has not run since. */
static int give_back(uint64_t limit_ns) {
    if (!quiescence_wait(limit_ns)) {
        return -1;
    }
    objects_hold(forget, NULL);
    return 0;
}

/* What is left of the last time, in a forked child of its parent's, has to go. */
static int make_ready(void) {
    if (!runtime_is_attached()) {
        uint32_t state = LOAD_ACQUIRE(&runtime.state);
        return state == RUNTIME_ASLEEP ? MEMTRACE_ATTACH_DONE
               : state == RUNTIME_OFF  ? MEMTRACE_ATTACH_OVER
                                       : MEMTRACE_ATTACH_THERE;
    }
    if (runtime_is_ready()) {
        return MEMTRACE_ATTACH_THERE;
    }
    if (is_over) {
        return MEMTRACE_ATTACH_OVER;
    }
    if (LOAD_ACQUIRE(&runtime.state) != RUNTIME_ASLEEP && give_back(LONG_WAIT_NS) != 0) {
        return MEMTRACE_ATTACH_BUSY;
    }
    return MEMTRACE_ATTACH_DONE;
}

static int attach(const char *settings) {
    char *array[SETTINGS + 1];
    int result = make_ready();
    if (result != MEMTRACE_ATTACH_DONE) {
        return result;
    }
    split(settings, array);
    is_collected = 0;
    for (char **at = array; *at != NULL; at++) {
        is_collected |= text_equal(*at, MEMTRACE_ATTACH_OUTSIDE) != 0;
    }
    real_ensure();
    if (attach_prepare() != 0) {
        return MEMTRACE_ATTACH_FAILED;
    }
    STORE_RELAXED(&runtime_attached, 1u);
    if (!runtime_attach(array)) {
        return MEMTRACE_ATTACH_FAILED;
    }
    allocators_expect();
    lead_all();
    loader_note_objects();
    return MEMTRACE_ATTACH_DONE;
}

static uintptr_t decimal(const char *text) {
    uintptr_t number = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        number = number * 10 + (uintptr_t)(*text - '0');
    }
    return number;
}

/* The command has read them, and written them to where this setting says. */
static void learn_filters(const char *settings) {
    const struct memtrace_filters *filters = NULL;
    const struct sock_filter *code;
    for (; *settings != '\0'; settings += text_length(settings) + 1) {
        if (text_starts(settings, MEMTRACE_ATTACH_FILTERS)) {
            filters = (const void *)decimal(settings + sizeof MEMTRACE_ATTACH_FILTERS - 1);
        }
    }
    code = filters != NULL ? (const void *)(filters + 1) : NULL;
    for (uint32_t i = 0; filters != NULL && i < filters->count && i < MEMTRACE_FILTERS_MOST; i++) {
        sandbox_know(code, filters->lengths[i]);
        code += filters->lengths[i];
    }
}

/* The thread itself is never counted: it is not the program's. Before any system call of ours it is
 * known what the program's filters say of it. */
PUBLIC int memtrace_attach(const char *settings) {
    learn_filters(settings);
    thread_pass_through(1);
    return begin_work() ? end_work(attach(settings)) : MEMTRACE_ATTACH_BUSY;
}

/* Words that lead to functions which are not followed are led now. */
static int follow(void) {
    int result = allocators_follow();
    attach_lead();
    return result == 0 ? MEMTRACE_ATTACH_DONE : MEMTRACE_ATTACH_FAILED;
}

PUBLIC int memtrace_follow(const char *unused) {
    (void)unused;
    thread_pass_through(1);
    return begin_work() ? end_work(follow()) : MEMTRACE_ATTACH_BUSY;
}

/* --- leaving ---------------------------------------------------------------------------------- */

/* First nothing new comes to us, then all that came is told. What cannot be given back at once is
 * given back when the program is attached to again. */
static int detach(void) {
    if (!runtime_is_attached()) {
        return MEMTRACE_ATTACH_NOT_OURS;
    }
    if (!runtime_is_ready()) {
        return MEMTRACE_ATTACH_OVER;
    }
    attach_put_back();
    sys_sleep_ns(FIRST_LOOK_NS); /* who has read a word is in our function soon */
    __atomic_fetch_or(&runtime.space.header->flags, MEMTRACE_FLAG_LEFT, __ATOMIC_RELAXED);
    runtime_finish(MEMTRACE_STATE_ENDED);
    attach_put_back(); /* of a library that was being loaded */
    give_back(SHORT_WAIT_NS);
    return MEMTRACE_ATTACH_DONE;
}

PUBLIC int memtrace_detach(const char *unused) {
    (void)unused;
    thread_pass_through(1);
    return begin_work() ? end_work(detach()) : MEMTRACE_ATTACH_BUSY;
}

/* --- a look at the heap ----------------------------------------------------------------------- */

enum { LOOK_SECONDS = 60 };

/* What the program calls malloc is the C library's, or is ours, which calls it. */
static int is_malloc_of_libc(void) {
    struct memtrace_malloc by;
    othermalloc_look(&by);
    return real.is_glibc &&
           (by.place == MEMTRACE_MALLOC_COUNTED ||
            (by.place == MEMTRACE_MALLOC_LIBRARY && text_starts(by.name, "libc.so")));
}

/* Not loaded for the first time only: what is profiled may be looked at, too. */
static int census(char *settings) {
    struct memtrace_census told = {0};
    struct mallinfo2 (*look)(void);
    struct mallinfo2 heap;
    real_ensure();
    look = (struct mallinfo2(*)(void))real_symbol("mallinfo2");
    if (!is_malloc_of_libc() || look == NULL) {
        return MEMTRACE_ATTACH_OTHER_MALLOC;
    }
    heap = look();
    told.arena_bytes = heap.uordblks;
    told.mapped_bytes = heap.hblkhd;
    told.mapped_count = heap.hblks;
    __builtin_memcpy(settings, &told, sizeof told);
    return sys_copy_process(MEMTRACE_CENSUS_COPY, LOOK_SECONDS) == 0 ? MEMTRACE_ATTACH_DONE
                                                                     : MEMTRACE_ATTACH_NO_COPY;
}

PUBLIC int memtrace_census(char *settings) {
    thread_pass_through(1);
    return begin_work() ? end_work(census(settings)) : MEMTRACE_ATTACH_BUSY;
}

/* Runs after the program's exit handlers, as the handler of a preloaded runtime does. */
__attribute__((destructor)) static void at_end(void) {
    STORE_RELAXED(&is_over, 1u);
    if (runtime_is_attached()) {
        runtime_finish(MEMTRACE_STATE_ENDED);
    }
}
