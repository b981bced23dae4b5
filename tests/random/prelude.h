/* SPDX-License-Identifier: MIT */
/*
 * prelude.h: what every generated program (generate.py) begins with: a thread's state, allocation,
 * the checksum, jumps, signals. C and C++.
 *
 * A program ends because every call burns fuel and every chain of calls has a depth. Its output is
 * its checksum: no address, no time, nothing that a compiler may choose is mixed in.
 */
#ifndef PRELUDE_H
#define PRELUDE_H

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE      __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define COLD          __attribute__((cold, noinline))

enum { FUEL = 80, DEPTH = 24, BLOCKS = 61 };

typedef uint32_t function(uint32_t a, uint32_t b, int depth);

/* Where longjmp may go, and how many objects with destructors lived there. */
struct jump {
    jmp_buf place;
    unsigned guards;
};

static __thread struct {
    uint32_t sum;
    int fuel;
    int level;       /* depth for callbacks */
    unsigned calm;   /* in destructors and handlers: nothing is thrown, no jump */
    unsigned guards; /* objects with destructors alive */
    struct jump *jump;
    unsigned next;
    unsigned char *block[BLOCKS];
    size_t size[BLOCKS];
} my;

static inline void mix(uint32_t value) {
    my.sum = (my.sum ^ value) * 16777619u + 1;
}

/* The place is known to the compiler no more. */
static inline void use(void *place) {
    __asm__ volatile("" : : "r"(place) : "memory");
}

/* Keeps a block until BLOCKS others have come. */
static inline void hold(void *block, size_t size) {
    unsigned at = my.next++ % BLOCKS;
    if (my.block[at] != NULL) {
        mix(my.block[at][my.size[at] / 2]);
    }
    free(my.block[at]);
    my.block[at] = (unsigned char *)block;
    my.size[at] = size;
    my.block[at][size / 2] = (unsigned char)size;
}

/* The oldest block, for realloc. */
static inline void *give_back(void) {
    unsigned at = my.next % BLOCKS;
    void *block = my.block[at];
    my.block[at] = NULL;
    return block;
}

static inline void *allocate_aligned(size_t size) {
    void *block = NULL;
    return posix_memalign(&block, 64, size) == 0 ? block : NULL;
}

static inline int spent(int depth) {
    return depth <= 0 || my.fuel-- <= 0;
}

static inline int may_leave(void) {
    return my.calm == 0;
}

static inline int may_jump(void) {
    return my.calm == 0 && my.jump != NULL && my.jump->guards == my.guards;
}

struct large {
    uint32_t word[40];
};

static int compare_words(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static void begin_thread(uint32_t seed) {
    memset(&my, 0, sizeof my);
    my.sum = seed;
}

/* Before each call from the outermost function. */
static void begin_call(void) {
    my.fuel = FUEL;
    my.jump = NULL;
    my.guards = 0;
    my.calm = 0;
}

static uint32_t end_thread(void) {
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(my.block[i]);
        my.block[i] = NULL;
    }
    return my.sum;
}

#ifdef __cplusplus
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/* No jump may leave a scope in which one of these lives. */
struct alive {
    alive() {
        my.guards++;
    }
    ~alive() {
        my.guards--;
    }
};

/* In here nothing is thrown. */
struct calm {
    calm() {
        my.calm++;
    }
    ~calm() {
        my.calm--;
    }
};

struct fault : std::runtime_error {
    uint32_t value;
    explicit fault(uint32_t number)
        : std::runtime_error(std::string(20 + number % 30, 'f')), value(number) {
    }
};

struct base {
    virtual ~base() = default;
    virtual uint32_t run(uint32_t a, uint32_t b, int depth) = 0;
};

template <typename F> NOINLINE uint32_t apply(F function, uint32_t value) {
    return function(value) + 1;
}
template <typename F> uint32_t apply_inline(F &&function, uint32_t value) {
    return function(value) ^ function(value + 1);
}
#endif

#endif
