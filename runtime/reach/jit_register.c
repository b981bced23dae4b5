/* SPDX-License-Identifier: MIT */
/*
 * jit_register.c: how the maker of code tells unwinders of it: __register_frame and its relatives
 * in libgcc, and the ways back. Each is handed on, and noted for our own walks under the address
 * that was registered: by that it is taken back, whichever function did it.
 */
#include "runtime/base/compiler.h"
#include "runtime/entry/real.h"
#include "runtime/entry/runtime.h"
#include "runtime/stack/jit.h"

/* A table is an array of .eh_frames, NULL at its end. */
static void add_table(const void *const *table) {
    for (const void *const *at = table; *at != NULL; at++) {
        jit_add(table, *at);
    }
}

static void take_back(const void *key) {
    uintptr_t start;
    uintptr_t end;
    if (jit_remove(key, &start, &end)) {
        rule_forget(&runtime.rules, start, end);
    }
}

#define NEXT(name) REAL_BY(real_unwinder_symbol(#name, __builtin_return_address(0)), name)

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
        take_back(frames);                                                                         \
        return next != NULL ? next(frames) : NULL;                                                 \
    }

DEFINE_REGISTER(__register_frame, jit_add(frames, frames), (const void *frames), frames)
DEFINE_REGISTER(__register_frame_info, jit_add(frames, frames), (const void *frames, void *object),
                frames, object)
DEFINE_REGISTER(__register_frame_info_bases, jit_add(frames, frames),
                (const void *frames, void *object, void *text, void *data), frames, object, text,
                data)
DEFINE_REGISTER(__register_frame_table, add_table(table), (const void *const *table), table)
DEFINE_REGISTER(__register_frame_info_table, add_table(table),
                (const void *const *table, void *object), table, object)
DEFINE_REGISTER(__register_frame_info_table_bases, add_table(table),
                (const void *const *table, void *object, void *text, void *data), table, object,
                text, data)
DEFINE_REGISTER(__deregister_frame, take_back(frames), (const void *frames), frames)
DEFINE_DEREGISTER(__deregister_frame_info)
DEFINE_DEREGISTER(__deregister_frame_info_bases)
