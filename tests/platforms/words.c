/* SPDX-License-Identifier: MIT */
/*
 * words.c: with LIBRARY defined a library that allocates by the words that the loader fills for it,
 * in the GOT and in data; else a program that opens it (its argument) so that these lead to the C
 * library itself, and calls it. Also what the runtime does by itself where the C library would:
 * system calls by number, whose errors are told.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

void by_got(int times);
void by_data(int times);

#ifdef LIBRARY
void *volatile block;
void *(*volatile in_data)(size_t) = malloc;

KEPT void by_got(int times) {
    for (int i = 0; i < times; i++) {
        block = malloc(33);
        free(block);
    }
}

KEPT void by_data(int times) {
    for (int i = 0; i < times; i++) {
        block = in_data(34);
        free(block);
    }
}
#else
/* A mapping that moves, by functions; and two errors, one of which is asked for. */
static int calls_are_right(void) {
    char *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        return 0;
    }
    mapped = mremap(mapped, 1 << 20, 3 << 20, MREMAP_MAYMOVE);
    errno = 0;
    return mapped != MAP_FAILED && syscall(SYS_getpid) == getpid() &&
           syscall(SYS_openat, AT_FDCWD, "/dev/null/none", 0) == -1 && errno == ENOTDIR &&
           syscall(SYS_seccomp, 99, 0, NULL) == -1 && (errno == EINVAL || errno == ENOSYS);
}

int main(int count, char **arguments) {
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    ((void (*)(int))dlsym(library, "by_got"))(100);
    ((void (*)(int))dlsym(library, "by_data"))(70);
    return calls_are_right() ? 0 : 1;
}
#endif
