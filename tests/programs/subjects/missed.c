/* SPDX-License-Identifier: MIT */
/*
 * missed.c: blocks that are freed past malloc's interposers: by the C library's own name for free,
 * or, `missed deepbind PLUGIN`, in a library that looks for free in the C library first. Each
 * block's place is used again, so that all of them are known to be gone in the end. `missed sizes`
 * wants a C library without a cache of freed blocks. Says how many frees nobody saw.
 */
#include "subject.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

enum { ROUNDS = 1000, SIZES = 4, THREADS = 3 };

typedef void free_function(void *block);

extern void __libc_free(void *block);

static free_function *free_past;
static const size_t sizes[SIZES] = {24, 700, 1500, 40000};

NOINLINE static void *take(size_t size) {
    void *block = malloc(size);
    keep(block);
    return block;
}

/* The C library gives out what was freed last. */
NOINLINE static void use(size_t size) {
    for (int i = 0; i < ROUNDS; i++) {
        free_past(take(size));
    }
    free(take(size));
}

static void *use_all(void *unused) {
    for (int i = 0; i < SIZES; i++) {
        use(sizes[i]);
    }
    return unused;
}

/* A small block over a large one's place, and the other way round: with no cache of freed blocks
 * the last one of the heap is one with what lies behind it again. */
static void change_sizes(void) {
    for (int i = 0; i < ROUNDS; i++) {
        void *large = take(3000);
        void *small;
        free_past(large);
        small = take(600);
        check(small == large, "the same place");
        free_past(small);
        large = take(5000);
        check(small == large, "the same place again");
        free(large);
    }
    free(take(600));
    free(take(3000));
}

int main(int argc, char **argv) {
    pthread_t thread[THREADS];
    if (argc > 2) {
        void *plugin = dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND);
        check(plugin != NULL, "the plugin");
        free_past = (free_function *)dlsym(plugin, "give_back");
    } else {
        free_past = __libc_free;
    }
    if (argc > 1 && strcmp(argv[1], "sizes") == 0) {
        change_sizes();
        printf("missed %d\n", 2 * ROUNDS);
    } else {
        use_all(NULL);
        for (int i = 0; i < THREADS; i++) {
            pthread_create(&thread[i], NULL, use_all, NULL);
            pthread_join(thread[i], NULL);
        }
        printf("missed %d\n", (THREADS + 1) * SIZES * ROUNDS);
    }
    return 3;
}
