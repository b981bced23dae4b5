/* SPDX-License-Identifier: MIT */
/* gone.c: opens LIBRARY and allocates in it; removes it "now", at the "end", or "never", and the
 * program itself if it is called with "self"; stays MILLISECONDS. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __attribute__((noinline)) void *own_leak(size_t size) {
    void *block = malloc(size);
    memset(block, 1, size);
    return block;
}

int main(int argc, char **argv) {
    void *library = argc > 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *(*entry)(size_t) = library != NULL ? (void *(*)(size_t))dlsym(library, "entry") : NULL;
    if (entry == NULL) {
        fprintf(stderr, "%s\n", argc > 3 ? dlerror() : "gone LIBRARY WHEN MILLISECONDS [self]");
        return 2;
    }
    if (strcmp(argv[2], "now") == 0) {
        unlink(argv[1]);
    }
    for (int i = 0; i < 100; i++) {
        ((char *)entry(1000))[0] = 1;
    }
    ((char *)own_leak(4000))[0] = 2;
    if (argc > 4) {
        unlink(argv[0]);
    }
    usleep((useconds_t)atoi(argv[3]) * 1000);
    if (strcmp(argv[2], "end") == 0) {
        unlink(argv[1]);
    }
    return 0;
}
