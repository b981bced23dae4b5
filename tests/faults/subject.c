/* SPDX-License-Identifier: MIT */
/* subject.c: allocates through many paths and in two threads, says so, ends with 3.
 * Arguments: the length of the paths (their number is two to its power); how often all is done;
 * anything: says that it is ready after the first time, and goes on when told so. */
#include "../programs/subjects/subject.h"

#include <pthread.h>
#include <stdlib.h>

NOINLINE static void *path(unsigned bits, int depth) {
    void *block = depth == 0   ? malloc(1000)
                  : (bits & 1) ? path(bits >> 1, depth - 1)
                               : path(bits >> 1, depth - 1);
    keep(block);
    return block;
}

static int length = 12;

static void *work(void *argument) {
    for (unsigned i = 0; i < 20000; i++) {
        unsigned bits = i * 2654435761u >> 16;
        void *block = (i & 1) ? path(bits, length) : path(bits ^ 1, length);
        if (block == NULL) {
            say("no memory\n");
            _exit(4);
        }
        if (i % 16 != 0) {
            free(block);
        }
    }
    return argument;
}

int main(int argc, char **argv) {
    int times = argc > 2 ? atoi(argv[2]) : 1;
    length = argc > 1 ? atoi(argv[1]) : length;
    for (int i = 0; i < times; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, NULL);
        work(NULL);
        pthread_join(thread, NULL);
        if (i == 0 && argc > 3) {
            char go;
            say("ready\n");
            check(read(0, &go, 1) == 1, "a word to go on");
        }
    }
    say("all done\n");
    return 3;
}
