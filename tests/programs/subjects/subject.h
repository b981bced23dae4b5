/* SPDX-License-Identifier: MIT */
/*
 * subject.h: what the small programs under test share. A subject may use no stdio (it allocates):
 * it speaks through write(2), and counts what it asked of the heap by plain arithmetic.
 */
#ifndef SUBJECT_H
#define SUBJECT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

/* The compiler must believe that somebody looks at the block. */
static inline void keep(const void *pointer) {
    __asm__ volatile("" : : "r"(pointer) : "memory");
}

/* A number the compiler cannot know. */
static inline size_t opaque(size_t value) {
    __asm__ volatile("" : "+r"(value));
    return value;
}

static struct {
    uint64_t allocations, bytes, frees, freed_bytes;
    int unknown; /* 1: the libc decides how often it allocates; 2: valgrind cannot run this either
                  */
} want;

static inline void allocated(size_t bytes) {
    want.allocations++;
    want.bytes += bytes;
}

static inline void freed(size_t bytes) {
    want.frees++;
    want.freed_bytes += bytes;
}

static inline void say(const char *text) {
    size_t length = strlen(text);
    while (length > 0) {
        ssize_t done = write(1, text, length);
        if (done <= 0) {
            _exit(99);
        }
        text += done;
        length -= (size_t)done;
    }
}

static inline void check(int truth, const char *what) {
    if (!truth) {
        say("WRONG: ");
        say(what);
        say("\n");
    }
}

/* What a subject does, chosen by name on its command line. */
struct subject_case {
    const char *name;
    void (*run)(void);
};

/* clang-format off */
#define CASE(name) {#name, case_##name}
/* clang-format on */

/* NULL: none of these has the name. */
#define FIND_CASE(cases, argc, argv)                                                               \
    subject_find((cases), sizeof(cases) / sizeof *(cases), (argc) > 1 ? (argv)[1] : "")

static inline const struct subject_case *subject_find(const struct subject_case *cases,
                                                      size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(cases[i].name, name) == 0) {
            return &cases[i];
        }
    }
    return NULL;
}

/* The line the tests read. */
static inline void say_wanted(void) {
    char line[200];
    if (want.unknown) {
        say(want.unknown == 1 ? "want unknown\n" : "want balanced\n");
        return;
    }
    snprintf(line, sizeof line,
             "want allocations %llu bytes %llu frees %llu live %lld blocks %lld\n",
             (unsigned long long)want.allocations, (unsigned long long)want.bytes,
             (unsigned long long)want.frees, (long long)(want.bytes - want.freed_bytes),
             (long long)(want.allocations - want.frees));
    say(line);
}

#endif
