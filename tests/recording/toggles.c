/* SPDX-License-Identifier: MIT */
/*
 * toggles.c HOW: allocates and frees while recording is switched off and on again, by signal or by
 * API. Frees of blocks that were recorded count whenever they come; those of others never do.
 * Prints "want allocations A frees F blocks B".
 */
#include "memtrace/memtrace.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 1000, ROUNDS = 20 };

static int by_signal;
static void *seen[BLOCKS];
static void *unseen[BLOCKS];

static void switch_to(int on) {
    if (by_signal) {
        raise(SIGUSR1);
    } else if (on) {
        memtrace_start();
    } else {
        memtrace_stop();
    }
}

__attribute__((noinline)) static void allocate(void **into) {
    for (size_t i = 0; i < BLOCKS; i++) {
        into[i] = malloc(i + 1);
    }
}

__attribute__((noinline)) static void release(void **from, size_t first, size_t end) {
    for (size_t i = first; i < end; i++) {
        free(from[i]);
    }
}

int main(int argc, char **argv) {
    char line[100];
    by_signal = argc > 1 && strcmp(argv[1], "signal") == 0;
    for (int i = 0; i < ROUNDS; i++) {
        allocate(seen);
        switch_to(0);
        allocate(unseen);
        release(seen, 0, BLOCKS / 2); /* recorded before: their ends count */
        release(unseen, 0, BLOCKS / 2);
        switch_to(1);
        release(unseen, BLOCKS / 2, BLOCKS);   /* never recorded: nothing */
        release(seen, BLOCKS / 2, BLOCKS - 1); /* one stays */
    }
    snprintf(line, sizeof line, "want allocations %d frees %d blocks %d", ROUNDS * BLOCKS,
             ROUNDS * (BLOCKS - 1), ROUNDS);
    switch_to(0);
    puts(line);
    return 0;
}
