/* SPDX-License-Identifier: MIT */
/*
 * host.c: opens guests: "deepbind:FILE", "apart:FILE" (a namespace of its own), "plain:FILE",
 * "global:FILE" (only opened), each run twice. With "storm" before them four threads open, run and
 * close one each, again and again.
 */
#include "subject.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

enum { VISITS = 30, GUESTS = 4 };

typedef void *run_function(void);
typedef void free_function(void *block);

NOINLINE static void *open_guest(const char *how, const char *file) {
    if (strcmp(how, "apart") == 0) {
        return dlmopen(LM_ID_NEWLM, file, RTLD_LAZY);
    }
    return dlopen(file, RTLD_LAZY | (strcmp(how, "deepbind") == 0 ? RTLD_DEEPBIND : 0) |
                            (strcmp(how, "global") == 0 ? RTLD_GLOBAL : 0));
}

NOINLINE static int visit(const char *argument) {
    const char *file = strchr(argument, ':') + 1;
    char how[16] = {0};
    memcpy(how, argument, (size_t)(file - argument) - 1);
    void *handle = open_guest(how, file);
    if (handle == NULL) {
        say(dlerror());
        return 1;
    }
    run_function *run = (run_function *)(uintptr_t)dlsym(handle, "guest_run");
    free_function *give_back = (free_function *)(uintptr_t)dlsym(handle, "guest_free");
    for (int i = 0; run != NULL && i < 2; i++) {
        void *block = run();
        keep(block);
        if (strcmp(how, "plain") == 0) {
            free(block);
        } else {
            give_back(block);
        }
    }
    return run != NULL ? dlclose(handle) : 0;
}

static void *visit_often(void *argument) {
    for (int i = 0; i < VISITS; i++) {
        check(visit(argument) == 0, "visit");
    }
    return NULL;
}

/* All guests at one time, a thread each. */
static void storm(char **guests) {
    pthread_t threads[GUESTS];
    for (size_t i = 0; i < GUESTS; i++) {
        pthread_create(&threads[i], NULL, visit_often, guests[i]);
    }
    for (size_t i = 0; i < GUESTS; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv) {
    int status = 3;
    if (argc == GUESTS + 2 && strcmp(argv[1], "storm") == 0) {
        storm(argv + 2);
        argc = 1;
    }
    for (int i = 1; i < argc; i++) {
        status = visit(argv[i]) != 0 ? 1 : status;
    }
    keep(malloc(70399));
    say("done\n");
    return status;
}
