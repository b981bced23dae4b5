/* SPDX-License-Identifier: MIT */
/*
 * allocator.c: a program that is linked with another allocator keeps it. Says which one answered.
 * Allocates with every alignment and many tiny sizes: blocks of some allocators lie 8 bytes apart.
 */
#include "subject.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

static void *churn(void *argument) {
    void *blocks[2000];
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < 2000; i++) {
            size_t size = i % 97 * (i % 13);
            blocks[i] = i % 50 == 7 ? memalign((size_t)16 << (i % 5), size) : malloc(size);
            memset(blocks[i], 1, size);
        }
        for (size_t i = 0; i < 2000; i++) {
            if (i % 3 == 0) {
                blocks[i] = realloc(blocks[i], i % 500 + 1);
            }
            free(blocks[i]);
        }
    }
    return argument;
}

/* 8-byte blocks that all live at one time, each with its own count. */
NOINLINE static void tiny(void) {
    static void *blocks[5000];
    for (size_t i = 0; i < 5000; i++) {
        blocks[i] = malloc(1 + i % 8);
        keep(blocks[i]);
    }
    for (size_t i = 0; i < 5000; i += 2) {
        free(blocks[i]);
    }
}

int main(void) {
    pthread_t threads[2];
    tiny();
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, churn, NULL);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    /* An allocator of its own gives memory outside the C library's heap. */
    struct mallinfo2 info = mallinfo2();
    void *kept = malloc(90101);
    keep(kept);
    struct mallinfo2 after = mallinfo2();
    say(after.uordblks - info.uordblks >= 90101 || after.hblkhd > info.hblkhd ? "seen\n"
                                                                              : "unseen\n");
    static const char *const marks[] = {"mallctl", "MallocExtension_ReleaseFreeMemory",
                                        "mi_version"};
    for (size_t i = 0; i < 3; i++) {
        if (dlsym(RTLD_DEFAULT, marks[i]) != NULL) {
            say(marks[i]);
            say("\n");
        }
    }
    /* The allocator itself tells whether the block is its own. */
    size_t (*usable)(const void *) = (size_t(*)(const void *))dlsym(RTLD_DEFAULT, "mi_usable_size");
    int (*owns)(const void *) = (int (*)(const void *))dlsym(RTLD_DEFAULT, "mi_is_in_heap_region");
    size_t (*sallocx)(const void *, int) =
        (size_t(*)(const void *, int))dlsym(RTLD_DEFAULT, "sallocx");
    int (*tc_owns)(const void *) =
        (int (*)(const void *))dlsym(RTLD_DEFAULT, "MallocExtension_GetOwnership");
    if (usable != NULL && owns != NULL) {
        say(owns(kept) && usable(kept) >= 90101 ? "own\n" : "foreign\n");
    } else if (sallocx != NULL) {
        say(sallocx(kept, 0) >= 90101 && sallocx(kept, 0) < 200000 ? "own\n" : "foreign\n");
    } else if (tc_owns != NULL) {
        say(tc_owns(kept) == 1 ? "own\n" : "foreign\n"); /* 1: kOwned */
    }
    return 3;
}
