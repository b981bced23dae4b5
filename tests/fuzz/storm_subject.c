/* SPDX-License-Identifier: MIT */
/*
 * storm_subject.c: a bit of everything that a recording or a profile can hold: threads that free
 * each other's blocks, mappings, a pool, marks, scopes, a chain of reallocations, recursion, small
 * forked children, leaks. storm.py records it.
 */
#include "memtrace/memtrace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char *volatile kept[40];

static void *take(int depth, size_t size) {
    char *block = depth > 0 ? take(depth - 1, size) : malloc(size);
    block[0] = 1;
    return block;
}

static void *free_them(void *unused) {
    MEMTRACE_SCOPE("frees");
    for (int i = 1; i < 20; i++) {
        free(kept[i]);
        kept[i + 20] = take(i % 4, (size_t)i * 333);
    }
    return unused;
}

int main(void) {
    char *area = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *chain = malloc(10);
    pthread_t thread;
    MEMTRACE_MARK("begin");
    for (int i = 0; i < 20; i++) {
        kept[i] = take(i % 5, 100 + (size_t)i * 16);
        chain = realloc(chain, 10 + (size_t)i * 50);
        MEMTRACE_ALLOC("pool", area + i * 64, 48);
    }
    for (int i = 0; i < 10; i++) {
        MEMTRACE_FREE("pool", area + i * 64);
    }
    pthread_create(&thread, NULL, free_them, NULL);
    pthread_join(thread, NULL);
    memset(area, 1, 1 << 20);
    area = mremap(area, 1 << 20, 2 << 20, MREMAP_MAYMOVE);
    MEMTRACE_MARK("middle");
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            kept[0] = take(i, 5000);
            _exit(0);
        }
        wait(NULL);
    }
    munmap(area + (1 << 20), 1 << 20);
    free(chain);
    MEMTRACE_MARK("end");
    return kept[39] == NULL;
}
