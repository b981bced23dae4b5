/* SPDX-License-Identifier: MIT */
/* destructors.c: holds more and more, and frees all of it: when it ends, or (with an argument)
 * before it goes on with something else. The last block stays, so that the allocator keeps the room
 * below it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 300000, SIZE = 200, STEPS = 10, PAUSE_US = 300000, END_US = 60000, AFTER = 20000 };

static void *blocks[BLOCKS];
static void *volatile last;

int main(int argc, char **argv) {
    (void)argv;
    for (int i = 0; i < BLOCKS; i++) {
        if (i % (BLOCKS / STEPS) == 0) {
            usleep(PAUSE_US);
        }
        blocks[i] = malloc(SIZE);
        memset(blocks[i], 1, SIZE);
    }
    last = malloc(SIZE);
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    usleep(END_US);
    for (int i = 0; argc > 1 && i < AFTER; i++) {
        free(malloc(SIZE / 2));
        if (i % (AFTER / STEPS) == 0) {
            usleep(PAUSE_US / 2);
        }
    }
    return 0;
}
