/* SPDX-License-Identifier: MIT */
/*
 * plugins.c: loads one library after the other, each gone before the next comes (mostly to the same
 * address). Arguments: libraries; "deepbind:" before one looks up its symbols in itself first. With
 * SUBJECT_TIMES=N all of them N times.
 */
#include "subject.h"

#include <dlfcn.h>
#include <stdlib.h>

static const char deepbind[] = "deepbind:";

NOINLINE static int load(const char *path) {
    int flags = 0;
    if (strncmp(path, deepbind, sizeof deepbind - 1) == 0) {
        path += sizeof deepbind - 1;
        flags = RTLD_DEEPBIND;
    }
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
    const char *times = getenv("SUBJECT_TIMES");
    for (int time = times != NULL ? atoi(times) : 1; time > 0; time--) {
        for (int i = 1; i < argc; i++) {
            if (load(argv[i]) != 0) {
                status = 1;
            }
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
