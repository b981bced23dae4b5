/* SPDX-License-Identifier: MIT */
/*
 * guest.c: a library that allocates in every way there is, each size once a call. FIRST is its
 * first size; bind it to its C library with RTLD_DEEPBIND or dlmopen.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 15 }; /* sizes: FIRST + 1, + 3, ... */

static void *(*in_data)(size_t) = malloc;
static void *before;

static void *keep(void *block) {
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}

/* Runs before anybody can lead our calls elsewhere. */
__attribute__((constructor)) static void start(void) {
    before = keep(malloc(FIRST));
}

__attribute__((noinline)) static void *start_thread(void *argument) {
    free(keep(malloc(FIRST + 21)));
    return argument;
}

/* Returns a block that the caller frees. */
__attribute__((visibility("default"))) void *guest_run(void) {
    char text[FIRST + LETTERS];
    void *block;
    pthread_t thread;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    free(keep(malloc(FIRST + 1)));
    block = keep(calloc(1, FIRST + 3));
    block = keep(realloc(block, FIRST + 5));
    free(block);
    free(keep(realloc(NULL, FIRST + 7)));
    if (posix_memalign(&block, 256, FIRST + 9) == 0) {
        free(keep(block));
    }
    free(keep(memalign(128, FIRST + 11)));
    free(keep(valloc(FIRST + 13)));
    free(keep(strdup(text)));        /* by its C library */
    free(keep(in_data(FIRST + 17))); /* by a word in its data */
    keep(malloc(FIRST + 19));        /* never freed */
    if (pthread_create(&thread, NULL, start_thread, NULL) == 0) {
        pthread_join(thread, NULL);
    }
    free(before);
    before = NULL;
    return keep(malloc(FIRST + 23));
}

__attribute__((visibility("default"))) void guest_free(void *block) {
    free(block);
}
