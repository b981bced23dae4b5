/* SPDX-License-Identifier: MIT */
/*
 * busy.c SEED THREADS STEPS: threads that do at random whatever a filter may ask for: blocks of
 * many sizes from several call paths, some temporary, some reallocated again and again, some freed
 * by other threads, some never; scopes in scopes, marks, a custom pool, mappings. The calls are the
 * same for the same arguments; when they happen is not.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memtrace/memtrace.h"

enum { SLOTS = 60, SHARED = 40, SCOPES = 4, PAGE = 4096, NAPS = 60, NAP_US = 8000 };

struct worker {
    unsigned seed;
    int steps;
    void *slots[SLOTS];
    uint64_t scopes[SCOPES];
    int scope_count;
    char pool[SLOTS][64];
    char used[SLOTS];
    void *mapping;
};

static void *shared[SHARED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned below(struct worker *worker, unsigned end) {
    worker->seed = worker->seed * 1664525u + 1013904223u;
    return (worker->seed >> 8) % end;
}

static size_t some_size(struct worker *worker) {
    static const size_t sizes[] = {0, 1, 16, 24, 24, 100, 1000, 1024, 4096, 20000};
    return below(worker, 3) == 0 ? below(worker, 5000) : sizes[below(worker, 10)];
}

__attribute__((noinline)) static void *alpha(struct worker *worker) {
    return malloc(some_size(worker));
}

__attribute__((noinline)) static void *beta(struct worker *worker) {
    return calloc(1, some_size(worker));
}

__attribute__((noinline)) static void *gamma_deep(struct worker *worker, unsigned depth) {
    void *block = depth == 0 ? alpha(worker) : gamma_deep(worker, depth - 1);
    __asm__ volatile("" ::: "memory");
    return block;
}

__attribute__((noinline)) static void *make(struct worker *worker) {
    switch (below(worker, 3)) {
    case 0:
        return alpha(worker);
    case 1:
        return beta(worker);
    default:
        return gamma_deep(worker, below(worker, 4));
    }
}

/* A vector that grows: one chain of reallocations. */
__attribute__((noinline)) static void *grow(struct worker *worker, void *block) {
    for (unsigned i = 1 + below(worker, 4); i > 0; i--) {
        block = realloc(block, 1 + some_size(worker));
    }
    return block;
}

static void exchange(struct worker *worker, void **mine) {
    unsigned at = below(worker, SHARED);
    void *other;
    pthread_mutex_lock(&lock);
    other = shared[at];
    shared[at] = *mine;
    pthread_mutex_unlock(&lock);
    *mine = other;
}

static void change_scope(struct worker *worker) {
    static const char *const names[] = {"load", "parse", "render"};
    if (worker->scope_count == SCOPES || (worker->scope_count != 0 && below(worker, 2) == 0)) {
        MEMTRACE_SCOPE_END(worker->scopes[--worker->scope_count]);
    } else {
        worker->scopes[worker->scope_count++] = MEMTRACE_SCOPE_BEGIN(names[below(worker, 3)]);
    }
}

static void change_pool(struct worker *worker) {
    unsigned at = below(worker, SLOTS);
    if (worker->used[at]) {
        MEMTRACE_FREE("arena", worker->pool[at]);
    } else {
        MEMTRACE_ALLOC("arena", worker->pool[at], 8 + below(worker, 56));
    }
    worker->used[at] = !worker->used[at];
}

static void change_mapping(struct worker *worker) {
    if (worker->mapping != NULL) {
        munmap(worker->mapping, 3 * PAGE);
        worker->mapping = NULL;
    } else {
        worker->mapping = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
}

static void step(struct worker *worker) {
    void **slot = &worker->slots[below(worker, SLOTS)];
    unsigned what = below(worker, 100);
    if (what < 3) {
        change_scope(worker);
    } else if (what < 7) {
        change_pool(worker);
    } else if (what < 8) {
        change_mapping(worker);
    } else if (what < 18) {
        exchange(worker, slot);
    } else if (what < 30) {
        *slot = grow(worker, *slot);
    } else if (what < 40) {
        free(make(worker)); /* temporary */
    } else if (what < 42) {
        *slot = make(worker); /* what was there leaks */
    } else {
        free(*slot);
        *slot = make(worker);
    }
}

static void *work(void *argument) {
    struct worker *worker = argument;
    for (int i = 0; i < worker->steps; i++) {
        step(worker);
        if (i % (worker->steps / NAPS) == 0) {
            usleep(NAP_US);
        }
        if (i % (worker->steps / 4) == worker->steps / 8) {
            MEMTRACE_MARK(i < worker->steps / 2 ? "early" : "late");
        }
    }
    for (int i = 0; i < SLOTS; i += 2) {
        free(worker->slots[i]);
    }
    return NULL;
}

static void *start(void *argument) {
    pthread_setname_np(pthread_self(), "helper");
    return work(argument);
}

int main(int argc, char **argv) {
    int threads = argc == 4 ? atoi(argv[2]) : 1;
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    pthread_t ids[16];
    for (int i = 0; i < threads; i++) {
        workers[i].seed = (unsigned)atoi(argv[1]) * 100u + (unsigned)i;
        workers[i].steps = atoi(argv[3]);
        if (i != 0) {
            pthread_create(&ids[i], NULL, start, &workers[i]);
        }
    }
    work(&workers[0]);
    for (int i = 1; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    return 0;
}
