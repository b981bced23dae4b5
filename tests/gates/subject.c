/* SPDX-License-Identifier: MIT */
/*
 * subject.c: a program in two versions, for diff.py. The later one (-DAFTER) has functions inlined,
 * another order of functions, and one thing that grew: PLANTED blocks in cache_fill(), called from
 * serve(). diff.py puts lines in where "lines" stands.
 */
#include <stdlib.h>
#include <string.h>

#ifdef AFTER
#define HELPER static inline __attribute__((always_inline))
#else
#define HELPER static __attribute__((noinline))
#endif
#define SOLID __attribute__((noinline))

void *volatile kept[4096];
static size_t kept_count;

SOLID static void keep(void *block) {
    kept[kept_count++] = block;
}

/* lines */
#ifdef AFTER
static int added_function(int value) {
    return value * 2 + 1;
}
#endif

/* lines */
HELPER void *index_block(size_t size) {
#ifdef AFTER
    if (added_function((int)size) == 0) {
        return NULL;
    }
#endif
    return malloc(size);
}

/* The same callee from several lines: they match by their order. */
SOLID static void load_index(void) {
    keep(index_block(1000));
    /* lines */
    keep(index_block(2000));
    keep(index_block(3000));
}

SOLID static void parse(int depth) {
    char *line = malloc(80);
    line[0] = 0;
    if (depth > 0) {
        parse(depth - 1);
    }
    free(line);
}

#ifdef AFTER
SOLID static void log_line(const char *text) {
    char *copy = strdup(text);
    free(copy);
}
#endif

SOLID static void cache_fill(int count) {
    for (int i = 0; i < count; i++) {
        /* lines */
        keep(malloc(512));
    }
}

#ifndef AFTER
SOLID static void log_line(const char *text) {
    char *copy = strdup(text);
    free(copy);
}

SOLID static void retired(void) {
    free(malloc(333));
}
#endif

SOLID static void serve(int requests) {
    for (int i = 0; i < requests; i++) {
        parse(3);
        log_line("a request");
    }
#ifdef AFTER
    cache_fill(10 + PLANTED);
#else
    cache_fill(10);
    retired();
#endif
}

int main(void) {
    load_index();
    /* lines */
    serve(20);
    return 0;
}
