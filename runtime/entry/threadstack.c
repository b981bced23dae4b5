/* SPDX-License-Identifier: MIT */
/* threadstack.c: see threadstack.h. */
#define _GNU_SOURCE
#include "runtime/entry/threadstack.h"

#include "runtime/base/sys.h"
#include "runtime/entry/thread.h"
#include "runtime/libc/libc.h"

#include <pthread.h>

static THREAD_LOCAL struct stack_bounds own;

const struct stack_bounds *threadstack_known(void) {
    return &own;
}

static void note_main(void) {
    uint64_t limit;
    uint64_t most = UINT64_C(1) << 30;
    sys_stack_limit(&limit);
    own.high = (libc_stack_top(&own.entry) | (sys_page_bytes() - 1)) + 1;
    own.low = own.high - (limit < most ? limit : most);
}

const struct stack_bounds *threadstack_find(void) {
    if (own.high == 0 && sys_getpid() == sys_gettid()) {
        note_main();
    }
    return &own;
}

/* Runs on the new thread, where calling the C library is safe. */
void thread_note_stack(void) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    thread_pass_through(1);
    if (sys_may_ask_affinity() && pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
            own.low = (uintptr_t)low;
            own.high = (uintptr_t)low + size;
        }
        pthread_attr_destroy(&attributes);
    }
    thread_pass_through(0);
}
