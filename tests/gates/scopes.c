/* SPDX-License-Identifier: MIT */
/*
 * scopes.c: threads that do requests within scopes, for check.py. Each counts what it allocates
 * within each of its own, and main prints the sums: "request INSTANCES MAX SUM MAXBYTES SUMBYTES".
 * Scopes lie in each other, and some end in another thread, one never does.
 */
#include "memtrace/memtrace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, REQUESTS = 40, MOST = 30 };

struct counts {
    unsigned long instances, most, sum, most_bytes, sum_bytes;
};

struct worker {
    pthread_t thread;
    unsigned seed;
    struct counts counts;
    uint64_t left_open; /* a scope for main to end */
};

static void count(struct counts *counts, unsigned long number, unsigned long bytes) {
    counts->instances++;
    counts->sum += number;
    counts->sum_bytes += bytes;
    counts->most = number > counts->most ? number : counts->most;
    counts->most_bytes = bytes > counts->most_bytes ? bytes : counts->most_bytes;
}

__attribute__((noinline)) static void allocate(size_t size) {
    void *volatile block = malloc(size);
    free(block);
}

/* One request in a scope, with another request inside now and then. */
static unsigned long request(struct worker *worker, int depth, unsigned long *bytes) {
    unsigned long number = 0;
    unsigned long own_bytes = 0;
    uint64_t scope = MEMTRACE_SCOPE_BEGIN("request");
    unsigned long wanted = (unsigned)rand_r(&worker->seed) % MOST;
    for (unsigned long i = 0; i < wanted; i++) {
        size_t size = 1 + (unsigned)rand_r(&worker->seed) % 1000;
        allocate(size);
        number++;
        own_bytes += size;
    }
    if (depth > 0 && rand_r(&worker->seed) % 4 == 0) {
        unsigned long inner_bytes = 0;
        number += request(worker, depth - 1, &inner_bytes);
        own_bytes += inner_bytes;
    }
    MEMTRACE_SCOPE_END(scope);
    count(&worker->counts, number, own_bytes);
    *bytes = own_bytes;
    return number;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    unsigned long bytes;
    for (int i = 0; i < REQUESTS; i++) {
        uint64_t other = MEMTRACE_SCOPE_BEGIN("another");
        request(worker, 2, &bytes);
        MEMTRACE_SCOPE_END(other);
        allocate(100000); /* outside */
    }
    worker->left_open = MEMTRACE_SCOPE_BEGIN("request");
    allocate(77);
    count(&worker->counts, 1, 77);
    return NULL;
}

int main(void) {
    static struct worker workers[THREADS];
    struct counts all = {0};
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].seed = i + 1;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        const struct counts *one = &workers[i].counts;
        pthread_join(workers[i].thread, NULL);
        all.instances += one->instances;
        all.sum += one->sum;
        all.sum_bytes += one->sum_bytes;
        all.most = one->most > all.most ? one->most : all.most;
        all.most_bytes = one->most_bytes > all.most_bytes ? one->most_bytes : all.most_bytes;
        if (i != 0) { /* the first one's ends with the program */
            MEMTRACE_SCOPE_END(workers[i].left_open);
        }
    }
    printf("request %lu %lu %lu %lu %lu\n", all.instances, all.most, all.sum, all.most_bytes,
           all.sum_bytes);
    return 0;
}
