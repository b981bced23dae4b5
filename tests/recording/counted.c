/* SPDX-License-Identifier: MIT */
/*
 * counted.c FILE THREADS [EVENTS [wait|paced|asked|forked]]: threads that allocate and free, each
 * counting in the shared FILE before and after each event what it did, so that whoever kills the
 * program knows what was done, to the event under way. For ever, or until EVENTS pairs are done by
 * each thread. wait: after that the program waits for the end of its standard input. paced: each
 * byte of that lets one thread do EVENTS more. asked: it also waits for a byte of it before, with
 * 256 blocks in hand, which the threads free. forked: a child of it does so, at once.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_THREADS = 64, SLOTS = 256 };

struct counts {
    uint64_t tid;
    uint64_t allocs_begun, allocs_done;
    uint64_t frees_begun, frees_done;
    uint64_t reserved[3];
};

static struct counts *counts;
static uint64_t most_events = UINT64_MAX;
static int is_paced;
static void *slots[SLOTS];

/* The kernel keeps the order of one thread's stores to shared memory; so must the compiler. */
static void bump(uint64_t *counter) {
    __atomic_store_n(counter, *counter + 1, __ATOMIC_SEQ_CST);
}

static void do_events(struct counts *own, unsigned seed) {
    for (uint64_t i = 0; i < most_events; i++) {
        void *block;
        seed = seed * 1664525u + 1013904223u;
        bump(&own->allocs_begun);
        block = malloc((seed >> 12) % 2000 + 1);
        bump(&own->allocs_done);
        block = __atomic_exchange_n(&slots[(seed >> 20) % SLOTS], block, __ATOMIC_ACQ_REL);
        if (block != NULL) {
            bump(&own->frees_begun);
            free(block);
            bump(&own->frees_done);
        }
    }
}

static void *churn(void *argument) {
    struct counts *own = argument;
    unsigned seed = (unsigned)(own - counts) + 99;
    own->tid = (uint64_t)syscall(SYS_gettid);
    do {
        do_events(own, seed++);
    } while (is_paced && read(0, (char[1]){0}, 1) > 0);
    return NULL;
}

static void run(int count, int is_said) {
    pthread_t threads[MOST_THREADS];
    for (int i = 0; i < count; i++) {
        pthread_create(&threads[i], NULL, churn, &counts[i]);
    }
    if (!is_said && write(1, "running\n", 8) != 8) {
        _exit(2);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Of 1 to 2,551 bytes. */
static void fill(void) {
    for (size_t i = 0; i < SLOTS; i++) {
        slots[i] = malloc(i * 10 + 1);
    }
}

/* Has all that is to be had before the threads. 0: a child does the rest, and has ended. */
static int begin(const char *how) {
    char byte;
    int status;
    pid_t child;
    is_paced = how[0] == 'p';
    if (how[0] == 'w' || is_paced) {
        return 1;
    }
    fill();
    if (how[0] == 'a') {
        return write(1, "ready\n", 6) == 6 && read(0, &byte, 1) == 1;
    }
    child = fork();
    return child == 0 || (waitpid(child, &status, 0) == child && 0);
}

int main(int argc, char **argv) {
    int count = argc > 2 ? atoi(argv[2]) : 0;
    int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    if (fd < 0 || count < 1 || count > MOST_THREADS ||
        ftruncate(fd, MOST_THREADS * sizeof *counts) != 0) {
        return 2;
    }
    most_events = argc > 3 ? strtoull(argv[3], NULL, 10) : UINT64_MAX;
    counts = mmap(NULL, MOST_THREADS * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (counts == MAP_FAILED) {
        return 2;
    }
    if (argc > 4 && !begin(argv[4])) {
        return 0;
    }
    run(count, argc > 4 && argv[4][0] == 'a');
    while (argc > 4 && read(0, (char[1]){0}, 1) > 0) {
    }
    return 0;
}
