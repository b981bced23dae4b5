/* SPDX-License-Identifier: MIT */
/*
 * pthread.c: pthread_create, so that a thread's stack is known before it runs. The thread starts in
 * our function, which leaves by a tail call: no frame of ours stays on its stack.
 */
#define _GNU_SOURCE
#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/entry/real.h"
#include "runtime/entry/thread.h"
#include "runtime/libc/libc.h"

#include <errno.h>
#include <pthread.h>

typedef void *start_function(void *argument);
typedef int create_function(pthread_t *thread, const pthread_attr_t *attributes,
                            start_function *start, void *argument);

/* What a new thread is to do. In memory of our own: it is none of the program's. */
struct start {
    start_function *function; /* NULL: the place is free */
    void *argument;
    struct libc_stack stack;
};

enum { STARTS = 256 };
static struct start starts[STARTS]; /* of threads that have not begun yet */
static uint32_t next_start;

/* A place for it; NULL: there is none. */
static struct start *keep_start(const struct start *start) {
    uint32_t first = __atomic_fetch_add(&next_start, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < STARTS; i++) {
        struct start *place = &starts[(first + i) % STARTS];
        start_function *none = NULL;
        if (LOAD_RELAXED(&place->function) == NULL &&
            __atomic_compare_exchange_n(&place->function, &none, start->function, 0,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            place->argument = start->argument;
            place->stack = start->stack;
            return place;
        }
    }
    struct start *more = sys_map(sizeof *more);
    if (more != NULL) {
        *more = *start;
    }
    return more;
}

static void give_back(struct start *place) {
    if (place >= starts && place < starts + STARTS) {
        STORE_RELEASE(&place->function, (start_function *)NULL);
    } else {
        sys_unmap(place, sizeof *place);
    }
}

/* Leaves by a jump, so nothing of its frame is handed on. */
static void *begin(void *argument) {
    struct start *place = argument;
    start_function *function = place->function;
    void *given = place->argument;
    int saved = errno;
    libc_note_outermost(__builtin_return_address(0));
    thread_note_stack(&place->stack);
    give_back(place);
    errno = saved;
    return function(given);
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          start_function *function, void *argument) {
    static create_function *real_create;
    struct start start = {.function = function, .argument = argument};
    struct start *kept;
    int result;
    if (real_create == NULL) {
        real_create = (create_function *)real_symbol("pthread_create");
    }
    thread_expect_company();
    libc_plan_stack(attributes, &start.stack);
    kept = keep_start(&start);
    if (kept == NULL) {
        return real_create(thread, attributes, function, argument);
    }
    /* What the C library allocates for the thread is counted, as valgrind does. */
    result = real_create(thread, attributes, begin, kept);
    if (result != 0) {
        give_back(kept);
    }
    return result;
}
