/* SPDX-License-Identifier: MIT */
/*
 * before.c THREADS: has a heap of known blocks in as many arenas, says "ready", and for each line
 * it gets ends a part of them in one way: by free, by a realloc that moves, by realloc to nothing,
 * by one that fails. After each it says how many have gone, and the bytes that they took of the
 * heap; what the C library says is given out now; and what it has given out since the start of the
 * step.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EACH = 2000, MOST = 8, MAPPED = 7, STEPS = 4 };

static char *blocks[MOST][EACH];
static size_t gone, gone_bytes, new_bytes;

/* Every size class, and mappings of their own. */
static size_t size_of(int i) {
    return i % (EACH / MAPPED) == 1 ? (size_t)200000 + (size_t)i : 8 + (size_t)i * 37 % 5000;
}

static void *fill(void *of) {
    char **mine = of;
    for (int i = 0; i < EACH; i++) {
        mine[i] = malloc(size_of(i));
        memset(mine[i], 1, size_of(i));
    }
    return NULL;
}

/* With the size word in front of it; of a mapping, with two. */
static size_t bytes_of(char *block) {
    size_t before;
    memcpy(&before, block - sizeof before, sizeof before);
    return malloc_usable_size(block) + ((before & 2) != 0 ? 16 : 8);
}

static void count(char *block) {
    gone++;
    gone_bytes += bytes_of(block);
}

static void end_block(char **at, int step) {
    char *block = *at;
    if (step == 0) {
        count(block);
        free(block);
        *at = NULL;
    } else if (step == 1) {
        count(block);
        *at = realloc(block, 9000);
        new_bytes += 9000;
    } else if (step == 2) {
        count(block);
        *at = realloc(block, 0);
    } else if (realloc(block, (size_t)-1 / 4) != NULL) {
        abort();
    }
}

static size_t given_out(void) {
    struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    char line[16];
    pthread_t thread[MOST];
    for (int i = 0; i < threads; i++) {
        pthread_create(&thread[i], NULL, fill, blocks[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    puts("ready");
    for (int step = 0; fgets(line, sizeof line, stdin) != NULL; step++) {
        for (int i = step % STEPS; i < EACH * threads && step < STEPS; i += STEPS) {
            end_block(&blocks[i / EACH][i % EACH], step);
        }
        printf("%zu %zu %zu %zu\n", gone, gone_bytes, given_out(), new_bytes);
    }
    return 3;
}
