/* SPDX-License-Identifier: MIT */
/*
 * plugins.c: loads one library after the other, each gone before the next comes (mostly to the same
 * address). Arguments: libraries.
 */
#include "subject.h"

#include <dlfcn.h>
#include <stdlib.h>

NOINLINE static int load(const char *path, int flags) {
    void *handle = dlopen(path, RTLD_NOW | flags);
    if (handle == NULL) {
        say(dlerror());
        return 1;
    }
    void *(*run)(void) = (void *(*)(void))dlsym(handle, "plugin_run");
    keep(run());
    return dlclose(handle);
}

int main(int argc, char **argv) {
    int status = 3;
    for (int i = 1; i < argc; i++) {
        if (load(argv[i], i == argc - 1 ? RTLD_DEEPBIND : 0) != 0) {
            status = 1;
        }
    }
    void *other = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW); /* has a libc of its own */
    say(other != NULL ? "dlmopen\n" : "no dlmopen\n");
    if (other != NULL) {
        void *(*run)(void) = (void *(*)(void))dlsym(other, "plugin_run");
        keep(run());
    }
    keep(malloc(70399));
    say("done\n");
    return status;
}
