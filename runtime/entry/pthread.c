/* SPDX-License-Identifier: MIT */
/*
 * pthread.c: pthread_create, so that a thread's stack is known before it runs. The thread starts in
 * our function, which leaves by a tail call: no frame of ours stays on its stack.
 */
#define _GNU_SOURCE
#include "runtime/base/compiler.h"
#include "runtime/entry/real.h"
#include "runtime/entry/thread.h"
#include "runtime/libc/libc.h"

#include <errno.h>
#include <pthread.h>

typedef void *start_function(void *argument);
typedef int create_function(pthread_t *thread, const pthread_attr_t *attributes,
                            start_function *start, void *argument);

struct start {
    start_function *function;
    void *argument;
};

static void *begin(void *argument) {
    struct start start = *(struct start *)argument;
    int saved = errno;
    libc_note_outermost(__builtin_return_address(0));
    real.free(argument);
    thread_note_stack();
    errno = saved;
    return start.function(start.argument);
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          start_function *function, void *argument) {
    static create_function *real_create;
    struct start *start = NULL;
    int result;
    if (real_create == NULL) {
        real_create = (create_function *)real_symbol("pthread_create");
    }
    thread_expect_company();
    if (real.malloc != NULL) {
        start = real.malloc(sizeof *start); /* uncounted: not the program's */
    }
    if (start == NULL) {
        return real_create(thread, attributes, function, argument);
    }
    *start = (struct start){function, argument};
    /* What the C library allocates for the thread is counted, as valgrind does. */
    result = real_create(thread, attributes, begin, start);
    if (result != 0) {
        real.free(start);
    }
    return result;
}
