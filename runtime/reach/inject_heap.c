/* SPDX-License-Identifier: MIT */
/*
 * inject_heap.c: other allocators than the one under ours, each with functions of ours that stand
 * in for its own. A stand-in counts and calls exactly the function that it stands for: so whoever
 * is led to it gets the memory that he would have got, and gives it back to where it came from.
 */
#define _GNU_SOURCE
#include "runtime/reach/inject.h"

#include "runtime/base/compiler.h"
#include "runtime/base/text.h"
#include "runtime/entry/event.h"
#include "runtime/entry/malloc.h"
#include "runtime/entry/real.h"
#include "runtime/entry/thread.h"
#include "runtime/libc/objects.h"

/* One allocator. */
struct heap {
    struct real real;      /* what is known of it */
    struct link_map *home; /* the object that it lies in; NULL: a free place */
    void *place;           /* an address there */
    int is_foreign;
};

/* glibc has 16 namespaces at most, each with a C library of its own. */
enum { HEAPS = 16, FUNCTIONS = 9 };

static struct heap heaps[HEAPS];

/* --- the stand-ins ---------------------------------------------------------------------------- */

INLINE const struct real *enter(const struct heap *heap) {
    if (heap->is_foreign) {
        thread_note_foreign_library();
    }
    return &heap->real;
}

/* All functions of allocator n, in the order of `functions`. */
#define STAND_INS(n)                                                                               \
    static void *malloc_##n(size_t size) {                                                         \
        return malloc_from(enter(&heaps[n]), heaps[n].real.malloc, size, MACHINE_FRAME());         \
    }                                                                                              \
    static void free_##n(void *pointer) {                                                          \
        malloc_return_to(enter(&heaps[n]), pointer, EVENT_PLACE());                                \
    }                                                                                              \
    static void *calloc_##n(size_t number, size_t size) {                                          \
        return malloc_zeroed_from(enter(&heaps[n]), number, size, MACHINE_FRAME());                \
    }                                                                                              \
    static void *realloc_##n(void *old, size_t size) {                                             \
        return malloc_resized_from(enter(&heaps[n]), old, size, MACHINE_FRAME());                  \
    }                                                                                              \
    static int posix_memalign_##n(void **out, size_t alignment, size_t size) {                     \
        return malloc_placed_from(enter(&heaps[n]), out, alignment, size, MACHINE_FRAME());        \
    }                                                                                              \
    static void *aligned_alloc_##n(size_t alignment, size_t size) {                                \
        return malloc_aligned_from(enter(&heaps[n]), heaps[n].real.aligned_alloc, alignment, size, \
                                   MACHINE_FRAME());                                               \
    }                                                                                              \
    static void *memalign_##n(size_t alignment, size_t size) {                                     \
        return malloc_aligned_from(enter(&heaps[n]), heaps[n].real.memalign, alignment, size,      \
                                   MACHINE_FRAME());                                               \
    }                                                                                              \
    static void *valloc_##n(size_t size) {                                                         \
        return malloc_from(enter(&heaps[n]), heaps[n].real.valloc, size, MACHINE_FRAME());         \
    }                                                                                              \
    static void *pvalloc_##n(size_t size) {                                                        \
        return malloc_from(enter(&heaps[n]), heaps[n].real.pvalloc, size, MACHINE_FRAME());        \
    }

#define ROW(n)                                                                                     \
    {                                                                                              \
        (void *)malloc_##n, (void *)free_##n, (void *)calloc_##n, (void *)realloc_##n,             \
            (void *)posix_memalign_##n, (void *)aligned_alloc_##n, (void *)memalign_##n,           \
            (void *)valloc_##n, (void *)pvalloc_##n                                                \
    }

#define EACH_HEAP(what)                                                                            \
    what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8) what(9) what(10)       \
        what(11) what(12) what(13) what(14) what(15)
#define COMMA_ROW(n) ROW(n),

EACH_HEAP(STAND_INS)

static void *const stand_in[HEAPS][FUNCTIONS] = {EACH_HEAP(COMMA_ROW)};

static const struct {
    const char *name;
    size_t at; /* in struct real */
} functions[FUNCTIONS] = {
    {"malloc", offsetof(struct real, malloc)},
    {"free", offsetof(struct real, free)},
    {"calloc", offsetof(struct real, calloc)},
    {"realloc", offsetof(struct real, realloc)},
    {"posix_memalign", offsetof(struct real, posix_memalign)},
    {"aligned_alloc", offsetof(struct real, aligned_alloc)},
    {"memalign", offsetof(struct real, memalign)},
    {"valloc", offsetof(struct real, valloc)},
    {"pvalloc", offsetof(struct real, pvalloc)},
};

/* --- finding them ----------------------------------------------------------------------------- */

int inject_heap_function(const char *name) {
    for (int i = 0; i < FUNCTIONS; i++) {
        if (text_equal(name, functions[i].name)) {
            return i;
        }
    }
    return -1;
}

static int is_gone(const struct heap *heap) {
    return heap->home == NULL || objects_at(heap->place) != heap->home;
}

/* The allocator in this object; NULL: it is not known yet. */
static struct heap *find(const struct link_map *home) {
    for (int i = 0; i < HEAPS; i++) {
        if (heaps[i].home == home && heaps[i].place == home->l_ld) {
            return &heaps[i];
        }
    }
    return NULL;
}

/* A place for it, perhaps that of one whose object is gone; NULL: there is none. */
static struct heap *add(struct link_map *home, int is_foreign) {
    for (int i = 0; i < HEAPS; i++) {
        if (is_gone(&heaps[i])) {
            heaps[i] = (struct heap){.real.is_glibc = objects_is_libc(home),
                                     .real.pads = !objects_is_libc(home),
                                     .home = home,
                                     .place = home->l_ld,
                                     .is_foreign = is_foreign};
            return &heaps[i];
        }
    }
    return NULL;
}

void *inject_heap_stand_in(int function, void *target, struct link_map *home, int is_known,
                           int is_foreign) {
    struct heap *heap = find(home);
    void **known;
    if (heap == NULL && !is_known) {
        heap = add(home, is_foreign);
    }
    if (heap == NULL) {
        return NULL;
    }
    known = (void **)((char *)&heap->real + functions[function].at);
    if (*known == NULL && !is_known) {
        *known = target;
    }
    return *known == target ? stand_in[heap - heaps][function] : NULL;
}
