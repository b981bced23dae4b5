/* SPDX-License-Identifier: MIT */
/* regions.c: blocks in several mappings: the heap, one of their own that is gone when the collector
 * looks again (at 1 s, 2 s, 4 s), another that comes where it lay, and the arena of a thread. */
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 4 << 20, SMALL = 50 };

static void *kept[2 * SMALL];

static void *helper(void *first) {
    for (int i = 0; i < SMALL; i++) {
        ((void **)first)[i] = malloc(1000 + (size_t)i);
    }
    return NULL;
}

static void *touched(size_t size) {
    void *block = malloc(size);
    return block != NULL ? memset(block, 1, size) : NULL;
}

int main(void) {
    pthread_t thread;
    void *large;
    mallopt(M_MMAP_THRESHOLD, LARGE / 4);
    free(touched(2 * LARGE + 4096)); /* where another lies later */
    large = touched(LARGE);
    helper(kept);
    if (pthread_create(&thread, NULL, helper, kept + SMALL) != 0) {
        return 1;
    }
    pthread_join(thread, NULL);
    usleep(1600000);
    free(large);
    for (int i = 0; i < SMALL; i++) {
        free(kept[i]);
    }
    usleep(1600000);
    large = touched(2 * LARGE);
    usleep(1600000);
    return large == NULL;
}
