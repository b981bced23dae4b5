/* SPDX-License-Identifier: MIT */
/*
 * host.c: opens guests: "deepbind:FILE", "apart:FILE" (a namespace of its own), "plain:FILE",
 * "global:FILE" (only opened), each run twice. What a guest in our namespace leaves we free.
 */
#include "subject.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef void *run_function(void);
typedef void free_function(void *block);

NOINLINE static void *open_guest(const char *how, const char *file) {
    if (strcmp(how, "apart") == 0) {
        return dlmopen(LM_ID_NEWLM, file, RTLD_LAZY);
    }
    return dlopen(file, RTLD_LAZY | (strcmp(how, "deepbind") == 0 ? RTLD_DEEPBIND : 0) |
                            (strcmp(how, "global") == 0 ? RTLD_GLOBAL : 0));
}

NOINLINE static int visit(char *argument) {
    char *file = strchr(argument, ':');
    *file++ = '\0';
    void *handle = open_guest(argument, file);
    if (handle == NULL) {
        say(dlerror());
        return 1;
    }
    run_function *run = (run_function *)(uintptr_t)dlsym(handle, "guest_run");
    free_function *give_back = (free_function *)(uintptr_t)dlsym(handle, "guest_free");
    for (int i = 0; run != NULL && i < 2; i++) {
        void *block = run();
        keep(block);
        if (strcmp(argument, "plain") == 0) {
            free(block);
        } else {
            give_back(block);
        }
    }
    say(argument);
    say("\n");
    return run != NULL && strcmp(argument, "apart") == 0 ? dlclose(handle) : 0;
}

int main(int argc, char **argv) {
    int status = 3;
    for (int i = 1; i < argc; i++) {
        if (visit(argv[i]) != 0) {
            status = 1;
        }
    }
    keep(malloc(70399));
    return status;
}
