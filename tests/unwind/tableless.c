/* SPDX-License-Identifier: MIT */
/*
 * tableless.c LIBRARY [FILE]: opens the library, calls into it and closes it, three times; what it
 * calls back allocates. Renames FILE to the library's place when that is open, once.
 */
#include "subject.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>

enum { TIMES = 3, BLOCKS = 20, SIZE = 50001, DEPTH = 60 };

NOINLINE static void called_back(void) {
    for (int i = 0; i < BLOCKS; i++) {
        keep(malloc(SIZE));
    }
}

NOINLINE static void call(void (*run)(void (*)(void), size_t)) {
    run(called_back, opaque(DEPTH));
    keep(NULL);
}

static int open_files(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

int main(int argc, char **argv) {
    int before = open_files();
    for (int i = 0; i < TIMES; i++) {
        void *handle = dlopen(argv[1], RTLD_NOW);
        void (*run)(void (*)(void), size_t);
        check(handle != NULL, "dlopen");
        run = (void (*)(void (*)(void), size_t))dlsym(handle, "frame_b");
        if (argc > 2) {
            check(rename(argv[2], argv[1]) == 0, "rename");
            argc = 2;
        }
        call(run);
        dlclose(handle);
    }
    check(open_files() == before, "a file stayed open");
    return 3;
}
