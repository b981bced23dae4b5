/* SPDX-License-Identifier: MIT */
/*
 * thinned.c ROUNDS: call paths that allocate, reallocate and free in turn, of sizes that arithmetic
 * tells; each holds its last blocks to the end. For each line of standard input ROUNDS rounds are
 * done, and a dot printed; at its end, for each path, "DEPTH ALLOCATIONS BYTES LIVE-BYTES".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATHS = 24, HELD = 600, A_ROUND = 40, REALLOC_EACH = 7, LEAST = 24, SPAN = 3000 };

static struct path {
    void *held[HELD];
    size_t size[HELD];
    uint64_t number, allocations, bytes;
} paths[PATHS];

static void allocate(struct path *path) {
    uint64_t number = path->number++ + 1000 * (uint64_t)(path - paths);
    size_t slot = number % HELD;
    size_t size = LEAST + (size_t)(number * 2654435761u >> 7) % SPAN;
    if (number % REALLOC_EACH == 0) {
        path->held[slot] = realloc(path->held[slot], size);
    } else {
        free(path->held[slot]);
        path->held[slot] = malloc(size);
    }
    path->size[slot] = size;
    path->allocations++;
    path->bytes += size;
}

/* A call path for each depth. */
__attribute__((noinline)) static void descend(struct path *path, int depth) {
    if (depth > 0) {
        descend(path, depth - 1);
        __asm__ volatile("");
        return;
    }
    for (int i = 0; i < A_ROUND; i++) {
        allocate(path);
    }
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 0;
    for (int byte = getchar(); byte != EOF; byte = getchar()) {
        for (long round = 0; byte == '\n' && round < rounds; round++) {
            for (int depth = 0; depth < PATHS; depth++) {
                descend(&paths[depth], depth);
            }
        }
        puts(".");
        fflush(stdout);
    }
    for (int depth = 0; depth < PATHS; depth++) {
        uint64_t live = 0;
        for (size_t slot = 0; slot < HELD; slot++) {
            live += paths[depth].held[slot] != NULL ? paths[depth].size[slot] : 0;
        }
        printf("%d %llu %llu %llu\n", depth, (unsigned long long)paths[depth].allocations,
               (unsigned long long)paths[depth].bytes, (unsigned long long)live);
    }
    return 0;
}
