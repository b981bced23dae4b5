/* SPDX-License-Identifier: MIT */
/* threadstack.c: see threadstack.h. */
#define _GNU_SOURCE
#include "runtime/entry/threadstack.h"

#include "runtime/base/sys.h"
#include "runtime/entry/thread.h"
#include "runtime/libc/libc.h"

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

void thread_note_stack(const struct libc_stack *planned) {
    uintptr_t low;
    uintptr_t high;
    int is_all = libc_own_stack(planned, &low, &high);
    if (is_all >= 0) {
        own = (struct stack_bounds){.low = low, .high = high, .grows = !is_all};
    }
}
