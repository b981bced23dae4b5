/* SPDX-License-Identifier: MIT */
/*
 * overlap.c: one thread closes a library while another opens the next to the same place and runs
 * it, before the first is back from dlclose (overlap_shim.c). Says where each lay.
 */
#include "subject.h"

#include <dlfcn.h>
#include <pthread.h>

void overlap_arm(void) __attribute__((weak));
void overlap_wait(void) __attribute__((weak));
void overlap_used(void) __attribute__((weak));

static void *handle;

NOINLINE static void *open_it(const char *file) {
    void *opened = dlopen(file, RTLD_NOW);
    check(opened != NULL, "dlopen");
    return opened;
}

NOINLINE static void close_it(void *opened) {
    dlclose(opened);
    keep(NULL);
}

NOINLINE static void call(void *opened, const char *name) {
    void (*run)(void) = (void (*)(void))dlsym(opened, name);
    char line[100];
    run();
    snprintf(line, sizeof line, "%p\n", (void *)(uintptr_t)run);
    say(line);
}

static void *close_in_between(void *argument) {
    if (overlap_wait != NULL) {
        overlap_wait();
    }
    close_it(handle);
    return argument;
}

/* Arguments: libraries, and after each the name of its function. */
int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        pthread_t thread;
        void *next;
        if (i > 1) {
            if (overlap_arm != NULL) {
                overlap_arm();
            }
            pthread_create(&thread, NULL, close_in_between, NULL);
            if (overlap_arm == NULL) {
                pthread_join(thread, NULL);
            }
        }
        next = open_it(argv[i]);
        call(next, argv[i + 1]);
        if (i > 1 && overlap_used != NULL) {
            overlap_used();
            pthread_join(thread, NULL);
        }
        call(next, argv[i + 1]);
        handle = next;
    }
    close_it(handle);
    return 3;
}
