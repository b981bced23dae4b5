/* SPDX-License-Identifier: MIT */
/*
 * backtrace.c: backtrace() and _Unwind_Backtrace(), which show a program its own frames alone, no
 * guards. Nothing else need know of them: exceptions, cancellation and debuggers step through a
 * guard by its unwind table. For glibc as a shared library: elsewhere there are no guards.
 */
#define _GNU_SOURCE
#include "runtime/entry/event.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"
#include "runtime/entry/thread.h"
#include "runtime/machine/machine.h"
#include "runtime/stack/guard.h"

#include <unwind.h>

/* Takes the guards off the stack from the caller of the function whose frame this is outwards.
 * Looks for them itself: this may be called anywhere, in signal handlers and on other stacks, too.
 */
static void remove_guards(uintptr_t frame) {
    struct stack_bounds unknown = {0};
    const struct thread *thread = thread_self;
    struct frame caller = event_caller(frame);
    caller.pc = guard_restore(frame);
    if (runtime.world.patches) {
        walk_remove_guards(&runtime.world, thread->walker != NULL ? thread->walker->stack : unknown,
                           caller);
    }
}

typedef int backtrace_function(void **buffer, int size);

/* The first call loads libgcc, which allocates, which may bring guards: so it comes before. Leaves
 * by a jump, so that no frame of ours is seen. */
PUBLIC int backtrace(void **buffer, int size);
PUBLIC int backtrace(void **buffer, int size) {
    static backtrace_function *real_backtrace;
    if (real_backtrace == NULL) {
        backtrace_function *found = (backtrace_function *)real_symbol("backtrace");
        void *one;
        found(&one, 1);
        real_backtrace = found;
    }
    remove_guards(MACHINE_FRAME());
    return real_backtrace(buffer, size);
}

/* What the program asked _Unwind_Backtrace for. */
struct trace {
    _Unwind_Trace_Fn callback;
    void *argument;
    uintptr_t (*get_ip)(struct _Unwind_Context *context);
    int is_first; /* our own frame */
};

/* The callback may allocate, so guards may come while the stack is walked: they are left out. */
static _Unwind_Reason_Code pass_on(struct _Unwind_Context *context, void *argument) {
    struct trace *trace = argument;
    if (trace->is_first || guard_is(trace->get_ip(context))) {
        trace->is_first = 0;
        return _URC_NO_REASON;
    }
    return trace->callback(context, trace->argument);
}

typedef _Unwind_Reason_Code unwind_function(_Unwind_Trace_Fn callback, void *argument);
typedef uintptr_t get_ip_function(struct _Unwind_Context *context);

/* Both of one library. Where there is none in the global scope, each caller may have one of its
 * own. */
PUBLIC _Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn callback, void *argument) {
    static unwind_function *global;
    static get_ip_function *global_get_ip;
    const void *caller = (const void *)guard_restore(MACHINE_FRAME());
    struct trace trace = {callback, argument, LOAD_RELAXED(&global_get_ip), 1};
    unwind_function *walk = LOAD_RELAXED(&global);
    if (walk == NULL || (MACHINE_HAS_GUARDS && trace.get_ip == NULL)) {
        STORE_RELAXED(&global_get_ip, (get_ip_function *)real_symbol("_Unwind_GetIP"));
        STORE_RELAXED(&global, (unwind_function *)real_symbol("_Unwind_Backtrace"));
        trace.get_ip = (get_ip_function *)real_unwinder_symbol("_Unwind_GetIP", caller);
        walk = (unwind_function *)real_unwinder_symbol("_Unwind_Backtrace", caller);
    }
    if (!MACHINE_HAS_GUARDS) { /* and perhaps no such function, but a macro (ARM): nothing to hide
                                */
        return walk != NULL ? walk(callback, argument) : _URC_END_OF_STACK;
    }
    return walk != NULL && trace.get_ip != NULL ? walk(pass_on, &trace) : _URC_END_OF_STACK;
}
