/* SPDX-License-Identifier: MIT */
/*
 * loader.c: dlclose, after which addresses may mean other code. dlopen needs nothing: objects are
 * found by address when they first appear in a backtrace.
 */
#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"

typedef int close_function(void *handle);

static void forget(void *rules, uintptr_t start, uintptr_t end) {
    rule_forget(rules, start, end);
}

PUBLIC int dlclose(void *handle);
PUBLIC int dlclose(void *handle) {
    static close_function *real_close;
    int result;
    if (real_close == NULL) {
        real_close = (close_function *)real_symbol("dlclose");
    }
    result = real_close(handle);
    if (LOAD_ACQUIRE(&runtime.state) == RUNTIME_READY && *runtime.alive != 0) {
        uint64_t now = sys_clock_ns(CLOCK_MONOTONIC) - runtime.space.header->start_monotonic_ns;
        module_sweep(&runtime.modules, now, forget, &runtime.rules);
    }
    return result;
}
