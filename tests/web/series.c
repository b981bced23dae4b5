/* SPDX-License-Identifier: MIT */
/* series.c COUNT [BURSTS]: allocates so often in bursts, at most 32, by two threads, and keeps some
 * of it. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static long count, bursts;
static void *kept[64];

static void *work(void *first) {
    for (long i = 0; i < count; i++) {
        free(malloc((size_t)(16 + i % 100)));
        if (i % (count / bursts) == 0) {
            ((void **)first)[i / (count / bursts)] = malloc(1000);
            usleep(20000);
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    count = argc > 1 ? atol(argv[1]) : 1000;
    bursts = argc > 2 ? atol(argv[2]) : 16;
    if (pthread_create(&thread, NULL, work, kept + 32) != 0) {
        return 1;
    }
    work(kept);
    pthread_join(thread, NULL);
    for (int i = 0; i < 8; i++) {
        free(kept[i]);
    }
    return 0;
}
