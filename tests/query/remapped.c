/* SPDX-License-Identifier: MIT */
/*
 * remapped.c THREADS ROUNDS: threads that map and unmap pieces of one size as fast as they can, so
 * that the kernel gives one thread at once what another has given back: by munmap, or by a mremap
 * that moves. Some are unmapped by another thread, and each thread keeps its last few: their
 * addresses are printed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { SIZE = 3 * 4096, THREADS = 16, SHARED = 4, KEPT = 3 };

static void *shared[SHARED];
static void *kept[THREADS][KEPT];
static int rounds;

static void *map_piece(void) {
    void *piece = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return piece;
}

static void *grow(void *piece) {
    void *grown = mremap(piece, SIZE, 2 * SIZE, MREMAP_MAYMOVE);
    if (grown == MAP_FAILED) {
        perror("mremap");
        exit(1);
    }
    return grown;
}

static void *work(void *argument) {
    void **mine = argument;
    for (int i = 0; i < rounds; i++) {
        void *piece = map_piece();
        if (i % 4 == 0) {
            piece = __atomic_exchange_n(&shared[i / 4 % SHARED], piece, __ATOMIC_ACQ_REL);
        }
        if (piece != NULL && i % 3 == 0) {
            munmap(grow(piece), 2 * SIZE);
        } else if (piece != NULL) {
            munmap(piece, SIZE);
        }
    }
    for (int i = 0; i < KEPT; i++) {
        mine[i] = map_piece();
    }
    return NULL;
}

static void print(void *piece) {
    if (piece != NULL) {
        printf("%lu\n", (unsigned long)piece);
    }
}

int main(int argc, char **argv) {
    int threads = argc == 3 ? atoi(argv[1]) : 1;
    pthread_t ids[THREADS];
    rounds = argc == 3 ? atoi(argv[2]) : 1;
    for (int i = 0; i < threads; i++) {
        pthread_create(&ids[i], NULL, work, kept[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        for (int k = 0; k < KEPT; k++) {
            print(kept[i][k]);
        }
    }
    for (int i = 0; i < SHARED; i++) {
        print(shared[i]);
    }
    return 0;
}
