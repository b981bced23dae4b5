/* SPDX-License-Identifier: MIT */
/*
 * unwinder.c: what a program asks of the unwinder, and tells it. For glibc as a shared library.
 *
 * backtrace() and _Unwind_Backtrace() show a program its own frames alone, no guards. Nothing else
 * need know of them: exceptions, cancellation and debuggers step through a guard by its unwind
 * table. Elsewhere there are no guards.
 *
 * How the maker of code tells unwinders of it: __register_frame and its relatives in libgcc, and
 * the ways back. Each is handed on, and noted for our own walks under the address that was
 * registered: by that it is taken back, whichever function did it.
 */
#define _GNU_SOURCE
#include "runtime/entry/event.h"
#include "runtime/entry/real.h"
#include "runtime/libc/objects.h"
#include "runtime/stack/guard.h"
#include "runtime/stack/jit.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <unwind.h>

/* A function of libgcc's unwinder, as the loader would have found it: in the global scope, else in
 * that of the object that calls. */
static void *unwinder_symbol(const char *name, const void *caller) {
    void *function = real_symbol(name);
    struct link_map *object = objects_at(caller);
    if (function == NULL && object != NULL) {
        function = dlsym(object, name);
        if (function != NULL && objects_at(function) == objects_at((void *)unwinder_symbol)) {
            function = NULL; /* the program's own scope has us in front */
        }
    }
    if (function == NULL) {
        void *library = dlopen(LIBGCC_S_SO, RTLD_LAZY | RTLD_NOLOAD);
        function = library != NULL ? dlsym(library, name) : NULL;
    }
    return function;
}

/* --- backtraces ------------------------------------------------------------------------------- */

/* Takes the guards off the stack from the caller of the function whose frame this is outwards.
 * Looks for them itself: this may be called anywhere, in signal handlers and on other stacks, too.
 */
static void unwinder_remove_guards(uintptr_t frame) {
    struct stack_bounds unknown = {0};
    const struct thread *thread = thread_self;
    struct frame caller = event_caller(frame);
    caller.pc = guard_restore(frame);
    if (runtime.world.patches) {
        walk_remove_guards(&runtime.world, thread->walker != NULL ? thread->walker->stack : unknown,
                           caller);
    }
}

/* The first call loads libgcc, which allocates, which may bring guards: so it comes before. Leaves
 * by a jump, so that no frame of ours is seen. */
PUBLIC int backtrace(void **buffer, int size);
PUBLIC int backtrace(void **buffer, int size) {
    static int (*real_backtrace)(void **buffer, int size);
    if (real_backtrace == NULL) {
        __typeof__(real_backtrace) found = (__typeof__(real_backtrace))real_symbol("backtrace");
        void *one;
        found(&one, 1);
        real_backtrace = found;
    }
    unwinder_remove_guards(MACHINE_FRAME());
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
static _Unwind_Reason_Code unwinder_pass_on(struct _Unwind_Context *context, void *argument) {
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
        trace.get_ip = (get_ip_function *)unwinder_symbol("_Unwind_GetIP", caller);
        walk = (unwind_function *)unwinder_symbol("_Unwind_Backtrace", caller);
    }
    if (!MACHINE_HAS_GUARDS) { /* and perhaps no such function, but a macro (ARM): nothing to hide
                                */
        return walk != NULL ? walk(callback, argument) : _URC_END_OF_STACK;
    }
    return walk != NULL && trace.get_ip != NULL ? walk(unwinder_pass_on, &trace)
                                                : _URC_END_OF_STACK;
}

/* --- code made at run time -------------------------------------------------------------------- */

/* A table is an array of .eh_frames, NULL at its end. */
static void unwinder_add_table(const void *const *table) {
    for (const void *const *at = table; *at != NULL; at++) {
        jit_add(table, *at);
    }
}

static void unwinder_take_back(const void *key) {
    uintptr_t start;
    uintptr_t end;
    if (jit_remove(key, &start, &end)) {
        rule_forget(&runtime.rules, start, end);
    }
}

#define NEXT(name) REAL_BY(unwinder_symbol(#name, __builtin_return_address(0)), name)

#define DEFINE_REGISTER(name, note, parameters, ...)                                               \
    PUBLIC void name parameters;                                                                   \
    PUBLIC void name parameters {                                                                  \
        __typeof__(&(name)) next = NEXT(name);                                                     \
        note;                                                                                      \
        if (next != NULL) {                                                                        \
            next(__VA_ARGS__);                                                                     \
        }                                                                                          \
    }

/* Taken back before: afterwards the memory may be another's. */
#define DEFINE_DEREGISTER(name)                                                                    \
    PUBLIC void *name(const void *frames);                                                         \
    PUBLIC void *name(const void *frames) {                                                        \
        __typeof__(&(name)) next = NEXT(name);                                                     \
        unwinder_take_back(frames);                                                                \
        return next != NULL ? next(frames) : NULL;                                                 \
    }

DEFINE_REGISTER(__register_frame, jit_add(frames, frames), (const void *frames), frames)
DEFINE_REGISTER(__register_frame_info, jit_add(frames, frames), (const void *frames, void *object),
                frames, object)
DEFINE_REGISTER(__register_frame_info_bases, jit_add(frames, frames),
                (const void *frames, void *object, void *text, void *data), frames, object, text,
                data)
DEFINE_REGISTER(__register_frame_table, unwinder_add_table(table), (const void *const *table),
                table)
DEFINE_REGISTER(__register_frame_info_table, unwinder_add_table(table),
                (const void *const *table, void *object), table, object)
DEFINE_REGISTER(__register_frame_info_table_bases, unwinder_add_table(table),
                (const void *const *table, void *object, void *text, void *data), table, object,
                text, data)
DEFINE_REGISTER(__deregister_frame, unwinder_take_back(frames), (const void *frames), frames)
DEFINE_DEREGISTER(__deregister_frame_info)
DEFINE_DEREGISTER(__deregister_frame_info_bases)
