/* SPDX-License-Identifier: MIT */
/*
 * modules.c: instrumented objects come and go, mostly at one address, each with other frames at the
 * same offsets. Built three times as a library with -DMODULE=0..2, and once as the program, which
 * gets the libraries' paths after the rounds.
 */
#include "storm.h"

#include <dlfcn.h>
#include <pthread.h>

#ifdef MODULE
#define FRAME (24 + 112 * MODULE)

/* Large and thread-local: the loader allocates it when a thread first touches it. */
__thread char of_thread[80000 + MODULE * 2000];

__attribute__((noinline)) static void inner(long round, void (*back)(long)) {
    char frame[FRAME];
    keep(frame);
#if MODULE != 1
    back(round);
#endif
    if (round % 50 == MODULE) {
        mark(75001 + MODULE * 2);
    }
    keep(frame);
}

void module_run(long round, void (*back)(long)) {
    char frame[FRAME / 2];
    keep(frame);
    inner(round, back);
    allocate();
    keep(frame);
}

/* Touching the variable calls the loader, which allocates: no call to be seen in the source. */
__attribute__((noinline)) static int touch(int early) {
    if (early) {
        return of_thread[opaque(5)];
    }
    mark(75011 + MODULE * 2);
    return 1;
}

int module_touch(int again) {
    int sum = touch(0);
    sum += touch(0) + again;
    return sum + touch(1);
}
#else

static char **libraries;

static void call_back(long round) {
    if (round % 20 == 0) {
        mark(75021);
    }
    allocate();
}

static void *thread_main(void *function) {
    int (*touch)(int) = (int (*)(int))function;
    int result = touch(1);
    keep(&result);
    return NULL;
}

static void storm_dlopen(long rounds) {
    for (long round = 0; round < rounds / 500; round++) {
        void *library = dlopen(libraries[round % 3], RTLD_NOW);
        void (*run)(long, void (*)(long)) =
            (void (*)(long, void (*)(long)))dlsym(library, "module_run");
        run(round, call_back);
        run(round, call_back);
        if (round % 10 < 3) {
            pthread_t thread;
            pthread_create(&thread, NULL, thread_main, dlsym(library, "module_touch"));
            pthread_join(thread, NULL);
        }
        dlclose(library);
        if (round % 20 == 0) {
            mark(75023);
        }
    }
}

int main(int argc, char **argv) {
    static const struct storm storms[] = {{"dlopen", storm_dlopen}};
    libraries = argv + 3;
    return storm_main(argc, argv, storms, 1);
}
#endif
