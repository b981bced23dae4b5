/* SPDX-License-Identifier: MIT */
/* own_allocator.c: malloc and friends that the program brings itself: a bump allocator. Linked into
 * the executable before the runtime; a preloaded runtime stands in front of it and must call it. */
#include "subject.h"

#include <errno.h>

static _Alignas(16) char arena[1 << 22];
static size_t used;
static unsigned calls;

__attribute__((noinline)) void *malloc(size_t size) {
    size_t start =
        (__atomic_fetch_add(&used, (size + 16 + 15) & ~(size_t)15, __ATOMIC_RELAXED)) + 16;
    calls++;
    if (size > sizeof arena || start + size > sizeof arena) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(arena + start - 16, &size, sizeof size);
    return arena + start;
}

void free(void *block) {
    (void)block;
}

void *calloc(size_t count, size_t size) {
    return malloc(count * size); /* fresh memory is zero */
}

void *realloc(void *old, size_t size) {
    char *block = malloc(size);
    if (old != NULL && block != NULL) {
        size_t old_size;
        memcpy(&old_size, (char *)old - 16, sizeof old_size);
        memcpy(block, old, old_size < size ? old_size : size);
    }
    return block;
}

void *(*volatile indirect)(size_t) = malloc;

int main(void) {
    for (int i = 0; i < 1000; i++) {
        void *block = indirect(opaque(90));
        keep(block);
        check((char *)block >= arena && (char *)block < arena + sizeof arena, "the own arena");
        free(block);
    }
    check(calls >= 1000, "the own malloc is called");
    char *copy = strdup("a copy made by the C library");
    check(copy >= arena && copy < arena + sizeof arena, "the library uses it too");
    say("done\n");
    return 3;
}
