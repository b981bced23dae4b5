/* SPDX-License-Identifier: MIT */
/*
 * spike.c: holds 8 MiB, for a moment 38 MiB, then 8 MiB again; with an argument it rests so many
 * milliseconds before and after the moment. Run by spike.py.
 */
#include <stdlib.h>
#include <time.h>

static void *volatile kept;

static void rest(const char *ms) {
    nanosleep(&(struct timespec){.tv_nsec = atol(ms) * 1000000}, NULL);
}

static void spike(void) {
    void *blocks[300];
    for (int i = 0; i < 300; i++) {
        kept = blocks[i] = malloc(100 << 10);
    }
    for (int i = 0; i < 300; i++) {
        free(blocks[i]);
    }
}

int main(int argc, char **argv) {
    kept = malloc(8 << 20);
    if (argc > 1) {
        rest(argv[1]);
    }
    spike();
    if (argc > 1) {
        rest(argv[1]);
    }
    return 0;
}
