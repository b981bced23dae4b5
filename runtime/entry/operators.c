/* SPDX-License-Identifier: MIT */
/*
 * operators.c: the operators new of C++, which begin in fast.c, as do those of delete, by mangled
 * name (Itanium ABI 5.1.5, "Special names"; size_t is unsigned long). A block of new is a block of
 * malloc, as in libstdc++, libc++ and the usual allocators. Where memory is out, the real operator
 * runs the new-handler and throws; its exception passes through here by this file's unwind tables.
 */
#include "runtime/base/compiler.h"
#include "runtime/entry/event.h"
#include "runtime/entry/malloc.h"
#include "runtime/entry/real.h"

#include <stddef.h>
#include <stdlib.h>

typedef void *new_function(size_t size);
typedef void *nothrow_function(size_t size, const void *tag);
typedef void *aligned_function(size_t size, size_t alignment);
typedef void *aligned_nothrow_function(size_t size, size_t alignment, const void *tag);

/* A program without libstdc++ that calls operator new brought its own: ours is then never called.
 * NULL all the same where it cannot be found. */
#define NAME_OF(name) #name
#define OUT_OF_MEMORY(type, name, ...)                                                             \
    ({                                                                                             \
        type *real_ = (type *)real_symbol(NAME_OF(name));                                          \
        real_ != NULL ? real_(__VA_ARGS__) : NULL;                                                 \
    })

/* Whether a nothrow operator has anything to do but return NULL: the real one would throw and
 * catch, and allocate its exception. */
static int has_new_handler(void) {
    typedef void (*handler)(void);
    handler (*get)(void) = (handler(*)(void))real_symbol("_ZSt15get_new_handlerv");
    return get == NULL || get() != NULL;
}

#define OUT_OF_MEMORY_NOTHROW(type, name, ...)                                                     \
    (has_new_handler() ? OUT_OF_MEMORY(type, name, __VA_ARGS__) : NULL)

void *new_slow(size_t size) {
    void *pointer = malloc_for_new(size, MACHINE_FRAME());
    return LIKELY(pointer != NULL) ? pointer
                                   : OUT_OF_MEMORY(new_function, MACHINE_OF_SIZE(_Znw, ), size);
}

void *new_array_slow(size_t size) {
    void *pointer = malloc_for_new(size, MACHINE_FRAME());
    return LIKELY(pointer != NULL) ? pointer
                                   : OUT_OF_MEMORY(new_function, MACHINE_OF_SIZE(_Zna, ), size);
}

#define DEFINE_NEW_NOTHROW(slow, name)                                                             \
    void *slow(size_t size, const void *tag) {                                                     \
        void *pointer = malloc_for_new(size, MACHINE_FRAME());                                     \
        return LIKELY(pointer != NULL) ? pointer                                                   \
                                       : OUT_OF_MEMORY_NOTHROW(nothrow_function, name, size, tag); \
    }

#define DEFINE_NEW_ALIGNED(slow, name)                                                             \
    void *slow(size_t size, size_t alignment) {                                                    \
        void *pointer = malloc_for_aligned_new(size, alignment, MACHINE_FRAME());                  \
        return LIKELY(pointer != NULL) ? pointer                                                   \
                                       : OUT_OF_MEMORY(aligned_function, name, size, alignment);   \
    }

DEFINE_NEW_NOTHROW(new_nothrow_slow, MACHINE_OF_SIZE(_Znw, RKSt9nothrow_t))
DEFINE_NEW_NOTHROW(new_array_nothrow_slow, MACHINE_OF_SIZE(_Zna, RKSt9nothrow_t))
DEFINE_NEW_ALIGNED(new_aligned_slow, MACHINE_OF_SIZE(_Znw, St11align_val_t))
DEFINE_NEW_ALIGNED(new_array_aligned_slow, MACHINE_OF_SIZE(_Zna, St11align_val_t))

/* Hardly ever called: these have no fast half. */
#define DEFINE_NEW_ALIGNED_NOTHROW(name)                                                           \
    PUBLIC void *name(size_t size, size_t alignment, const void *tag);                             \
    PUBLIC void *name(size_t size, size_t alignment, const void *tag) {                            \
        void *pointer = malloc_for_aligned_new(size, alignment, MACHINE_FRAME());                  \
        return LIKELY(pointer != NULL)                                                             \
                   ? pointer                                                                       \
                   : OUT_OF_MEMORY_NOTHROW(aligned_nothrow_function, name, size, alignment, tag);  \
    }

DEFINE_NEW_ALIGNED_NOTHROW(MACHINE_OF_SIZE(_Znw, St11align_val_tRKSt9nothrow_t))
DEFINE_NEW_ALIGNED_NOTHROW(MACHINE_OF_SIZE(_Zna, St11align_val_tRKSt9nothrow_t))
