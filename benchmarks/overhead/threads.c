/* SPDX-License-Identifier: MIT */
/*
 * threads.c: threads that allocate blocks and free each other's. Run by benchmarks/run.
 *
 *   --threads N  threads (default 4); each hands all its blocks to the next one, which frees them.
 *                With one thread it frees its own: the same work without company.
 *   --batches N --batch N    lists handed over by each thread, and blocks in a list
 *
 * Blocks are linked through their first word and lists through their first block's second word, so
 * nothing but the blocks themselves is allocated and one atomic exchange moves a whole list.
 * Results: wall and processor time for each pair, over all threads.
 */
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MAX_THREADS = 64, MAX_WAITING_LISTS = 32, BLOCK_SIZE = 64 };

struct block {
    struct block *next;      /* of the same list */
    struct block *next_list; /* first block only */
};

/* The lists that wait for one thread. Padded: neighbours must not share a cache line. */
struct mailbox {
    _Alignas(128) _Atomic(struct block *) lists;
    atomic_long waiting;
};

struct worker {
    pthread_t thread;
    struct mailbox *mine, *neighbours;
};

static struct mailbox mailboxes[MAX_THREADS];
static struct worker workers[MAX_THREADS];
static long batches, batch;
static pthread_barrier_t start_line;
static atomic_long still_sending;

static BENCH_FRAME struct block *make_list(long count) {
    struct block *list = NULL;
    for (long i = 0; i < count; i++) {
        struct block *block = malloc(BLOCK_SIZE);
        block->next = list;
        list = block;
    }
    return list;
}

static BENCH_FRAME void free_list(struct block *list) {
    while (list) {
        struct block *next = list->next;
        free(list);
        list = next;
    }
}

static void send_list(struct mailbox *to, struct block *list) {
    list->next_list = atomic_load_explicit(&to->lists, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&to->lists, &list->next_list, list,
                                                  memory_order_release, memory_order_relaxed))
        ;
    atomic_fetch_add_explicit(&to->waiting, 1, memory_order_relaxed);
}

/* Returns the number of lists freed. */
static long free_received(struct mailbox *from) {
    long count = 0;
    struct block *list = atomic_exchange_explicit(&from->lists, NULL, memory_order_acquire);
    while (list) {
        struct block *next = list->next_list;
        free_list(list);
        list = next;
        count++;
    }
    atomic_fetch_sub_explicit(&from->waiting, count, memory_order_relaxed);
    return count;
}

static void *work(void *argument) {
    struct worker *self = argument;
    pthread_barrier_wait(&start_line);
    for (long i = 0; i < batches; i++) {
        /* Bounded, so that a thread without a core is not buried in blocks. */
        while (atomic_load_explicit(&self->neighbours->waiting, memory_order_relaxed) >
               MAX_WAITING_LISTS) {
            if (free_received(self->mine) == 0)
                sched_yield();
        }
        send_list(self->neighbours, make_list(batch));
        free_received(self->mine);
    }
    atomic_fetch_sub(&still_sending, 1);
    while (atomic_load(&still_sending) > 0) {
        if (free_received(self->mine) == 0)
            sched_yield();
    }
    free_received(self->mine);
    return NULL;
}

int main(int argc, char **argv) {
    long threads = bench_option(argc, argv, "--threads", 4);
    batches = bench_option(argc, argv, "--batches", 2000);
    batch = bench_option(argc, argv, "--batch", 256);
    if (threads < 1 || threads > MAX_THREADS) {
        fprintf(stderr, "threads: --threads must be 1 to %d\n", MAX_THREADS);
        return 2;
    }
    atomic_store(&still_sending, threads);
    pthread_barrier_init(&start_line, NULL, (unsigned)threads + 1);
    for (long i = 0; i < threads; i++) {
        workers[i].mine = &mailboxes[i];
        workers[i].neighbours = &mailboxes[(i + 1) % threads];
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            perror("threads: pthread_create");
            return 1;
        }
    }
    /* Before the line: behind it the others may run first. All that runs up to it is waiting. */
    uint64_t wall = bench_wall_ns();
    uint64_t processor = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    pthread_barrier_wait(&start_line);
    for (long i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    double pairs = (double)threads * (double)batches * (double)batch;
    bench_result("pair_wall_ns", (double)(bench_wall_ns() - wall) / pairs);
    bench_result("pair_cpu_ns",
                 (double)(bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - processor) / pairs);
    return 0;
}
