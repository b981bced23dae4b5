/* SPDX-License-Identifier: MIT */
/* keeper.c: a thousand blocks of 100 to 1,099 bytes, made by keep() of a library: the one that it
 * is linked with, or, with -DOPENED, that which its argument names. 3 is its exit status. */
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

#ifndef OPENED
void *keep(size_t size);
#endif

int main(int argc, char **argv) {
#ifdef OPENED
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *(*keep)(size_t) = library != NULL ? (void *(*)(size_t))dlsym(library, "keep") : NULL;
    if (keep == NULL) {
        return 2;
    }
#endif
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < 1000; i++) {
        if (keep(100 + i) == NULL) {
            return 1;
        }
    }
    return write(1, "done\n", 5) == 5 ? 3 : 1;
}
