/* SPDX-License-Identifier: MIT */
/*
 * turns.c: a thread calls into one library after the other, from the same place and depth; the main
 * thread changes them meanwhile, so that their code lies at the same addresses. Says where each
 * lay.
 */
#include "subject.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

static void *(*run)(void);
static int over;
static sem_t go, done;

NOINLINE static void call(void) {
    keep(run());
    __asm__ volatile("");
}

static void *work(void *argument) {
    for (;;) {
        sem_wait(&go);
        if (over) {
            return argument;
        }
        call();
        sem_post(&done);
    }
}

int main(int argc, char **argv) {
    pthread_t thread;
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    pthread_create(&thread, NULL, work, NULL);
    for (int i = 1; i < argc; i++) {
        char line[100];
        void *handle = dlopen(argv[i], RTLD_NOW);
        check(handle != NULL, "dlopen");
        run = (void *(*)(void))dlsym(handle, "plugin_run");
        sem_post(&go);
        sem_wait(&done);
        snprintf(line, sizeof line, "%p\n", (void *)(uintptr_t)run);
        say(line);
        dlclose(handle);
    }
    over = 1;
    sem_post(&go);
    pthread_join(thread, NULL);
    return 3;
}
