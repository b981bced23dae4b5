/* SPDX-License-Identifier: MIT */
/*
 * attach.c: coming up in a program that runs (`memtrace attach`), and leaving it. Called by a
 * thread that the command starts in it. Nothing is preloaded then: the words of all objects that
 * hold addresses of functions that we stand in for are led to us (rebind.c), and `memtrace detach`
 * puts them back.
 */
#define _GNU_SOURCE
#include "runtime/reach/reach.h"

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

/* The process in which a thread of ours is at work, one at a time: a forked child may find its
 * parent's. */
static uint32_t busy;

/* The thread itself is never counted: it is not the program's. */
static int attach_work(int (*function)(char *argument), char *argument) {
    uint32_t pid;
    uint32_t before;
    int result = MEMTRACE_ATTACH_BUSY;
    thread_pass_through(1);
    pid = sys_getpid();
    before = LOAD_RELAXED(&busy);
    if (before != pid &&
        __atomic_compare_exchange_n(&busy, &before, pid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        result = function(argument);
        STORE_RELEASE(&busy, 0u);
    }
    return result;
}

/* --- coming ----------------------------------------------------------------------------------- */

static void attach_forget(void *unused) {
    (void)unused;
    runtime_forget();
}

/* Gives back what the runtime has left, as soon as no thread can be inside it. No thread is about
 * to look at a table that the loader let it wait for. 0, or -1: some thread has not run since. */
static int attach_give_back(uint64_t limit_ns) {
    if (!quiescence_wait(limit_ns)) {
        return -1;
    }
    objects_hold(attach_forget, NULL);
    return 0;
}

/* What is left of the last time, in a forked child of its parent's, has to go. */
static int attach_make_ready(void) {
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
    if (LOAD_ACQUIRE(&runtime.state) != RUNTIME_ASLEEP && attach_give_back(LONG_WAIT_NS) != 0) {
        return MEMTRACE_ATTACH_BUSY;
    }
    return MEMTRACE_ATTACH_DONE;
}

static int attach_come(char *settings) {
    char *array[SETTINGS + 1];
    size_t count = 0;
    int result = attach_make_ready();
    if (result != MEMTRACE_ATTACH_DONE) {
        return result;
    }
    is_collected = 0;
    for (; *settings != '\0' && count < SETTINGS; settings += text_length(settings) + 1) {
        is_collected |= text_equal(settings, MEMTRACE_ATTACH_OUTSIDE) != 0;
        array[count++] = settings;
    }
    array[count] = NULL;
    real_ensure();
    if (rebind_prepare() != 0) {
        return MEMTRACE_ATTACH_FAILED;
    }
    STORE_RELAXED(&runtime_attached, 1u);
    if (!runtime_attach(array)) {
        return MEMTRACE_ATTACH_FAILED;
    }
    allocators_expect();
    rebind_lead();
    sys_sleep_ns(FIRST_LOOK_NS); /* words that the loader was about to bind have been bound since */
    rebind_lead();
    sys_sleep_ns(SECOND_LOOK_NS);
    rebind_lead();
    loader_note_objects();
    return MEMTRACE_ATTACH_DONE;
}

/* The command has read them, and written them to where this setting says. */
static void attach_learn_filters(const char *settings) {
    const struct memtrace_filters *filters = NULL;
    const struct sock_filter *code;
    for (; *settings != '\0'; settings += text_length(settings) + 1) {
        if (text_starts(settings, MEMTRACE_ATTACH_FILTERS)) {
            const char *digit = settings + sizeof MEMTRACE_ATTACH_FILTERS - 1;
            filters = (const void *)(uintptr_t)text_read_number(&digit);
        }
    }
    code = filters != NULL ? (const void *)(filters + 1) : NULL;
    for (uint32_t i = 0; filters != NULL && i < filters->count && i < MEMTRACE_FILTERS_MOST; i++) {
        sandbox_know(code, filters->lengths[i]);
        code += filters->lengths[i];
    }
}

/* Before any system call of ours it is known what the program's filters say of it. */
PUBLIC int memtrace_attach(const char *settings) {
    attach_learn_filters(settings);
    return attach_work(attach_come, (char *)settings);
}

/* Words that lead to functions which are not followed are led now. */
static int attach_follow(char *unused) {
    int result = allocators_follow();
    (void)unused;
    rebind_lead();
    return result == 0 ? MEMTRACE_ATTACH_DONE : MEMTRACE_ATTACH_FAILED;
}

PUBLIC int memtrace_follow(const char *unused) {
    (void)unused;
    return attach_work(attach_follow, NULL);
}

/* --- leaving ---------------------------------------------------------------------------------- */

/* First nothing new comes to us, then all that came is told. What cannot be given back at once is
 * given back when the program is attached to again. */
static int attach_leave(char *unused) {
    (void)unused;
    if (!runtime_is_attached()) {
        return MEMTRACE_ATTACH_NOT_OURS;
    }
    if (!runtime_is_ready()) {
        return MEMTRACE_ATTACH_OVER;
    }
    rebind_put_back();
    sys_sleep_ns(FIRST_LOOK_NS); /* who has read a word is in our function soon */
    __atomic_fetch_or(&runtime.space.header->flags, MEMTRACE_FLAG_LEFT, __ATOMIC_RELAXED);
    runtime_finish(MEMTRACE_STATE_ENDED);
    rebind_put_back(); /* of a library that was being loaded */
    attach_give_back(SHORT_WAIT_NS);
    return MEMTRACE_ATTACH_DONE;
}

PUBLIC int memtrace_detach(const char *unused) {
    (void)unused;
    return attach_work(attach_leave, NULL);
}

/* --- a look at the heap ----------------------------------------------------------------------- */

enum { LOOK_SECONDS = 60 };

/* Not loaded for the first time only: what is profiled may be looked at, too. */
static int attach_census(char *settings) {
    struct memtrace_census told = {0};
    struct memtrace_malloc by;
    struct mallinfo2 (*look)(void);
    struct mallinfo2 heap;
    real_ensure();
    look = (struct mallinfo2(*)(void))real_symbol("mallinfo2");
    othermalloc_look(&by);
    /* What the program calls malloc has to be the C library's, or ours, which calls it. */
    if (look == NULL || !real.is_glibc ||
        !(by.place == MEMTRACE_MALLOC_COUNTED ||
          (by.place == MEMTRACE_MALLOC_LIBRARY && text_starts(by.name, "libc.so")))) {
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
    return attach_work(attach_census, settings);
}

/* Runs after the program's exit handlers, as the handler of a preloaded runtime does. */
__attribute__((destructor)) static void attach_at_end(void) {
    STORE_RELAXED(&is_over, 1u);
    if (runtime_is_attached()) {
        runtime_finish(MEMTRACE_STATE_ENDED);
    }
}
