/* SPDX-License-Identifier: MIT */
/*
 * last_call.c: functions that look at who called them, called last, so that they are entered by a
 * jump and find their caller's return address, which was allocated over. Built twice: the library
 * (LIBRARY) is opened locally, so its symbol is found only by who may look there. Ends with 3 if
 * every look found what it should.
 */
#define _GNU_SOURCE
#include "subject.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdlib.h>

typedef int look_function(int depth, int times);

#ifdef LIBRARY

int only_here = 42;

NOINLINE static void *deep(int depth) {
    void *block = depth == 0 ? malloc(24) : deep(depth - 1);
    keep(block);
    return block;
}

NOINLINE static void *look(int depth, int times) {
    for (int i = 0; i < times; i++) {
        free(deep(depth));
    }
    return dlsym(RTLD_DEFAULT, "only_here");
}

/* The library's one version is in last_call.map. */
NOINLINE static void *look_for_version(int depth, int times) {
    for (int i = 0; i < times; i++) {
        free(deep(depth));
    }
    return dlvsym(RTLD_DEFAULT, "only_here", "LAST_CALL_1");
}

int run_look(int depth, int times);
int run_look(int depth, int times) {
    void *found = look(depth, times);
    keep(found);
    return found == &only_here;
}

int run_look_for_version(int depth, int times);
int run_look_for_version(int depth, int times) {
    void *found = look_for_version(depth, times);
    keep(found);
    return found == &only_here;
}

#else

static int trace(void) {
    void *frames[200];
    return backtrace(frames, 200);
}

/* `depth` frames further in: how many frames there are, after many allocations. */
NOINLINE static int traced(int depth) {
    int count;
    if (depth > 0) {
        count = traced(depth - 1);
    } else {
        for (int i = 0; i < 100; i++) {
            void *block = malloc(32);
            keep(block);
            free(block);
        }
        count = trace();
    }
    keep(&count);
    return count;
}

static int finds(look_function *look) {
    for (int depth = 0; look != NULL && depth < 30; depth++) {
        for (int times = 0; times < 40; times++) {
            if (!look(depth, times)) {
                return 0;
            }
        }
    }
    return look != NULL;
}

int main(int count, char **arguments) {
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        return 1;
    }
    if (!finds((look_function *)dlsym(library, "run_look")) ||
        !finds((look_function *)dlsym(library, "run_look_for_version"))) {
        return 2;
    }
    return traced(60) == traced(20) + 40 ? 3 : 4;
}

#endif
