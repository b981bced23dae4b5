/* SPDX-License-Identifier: MIT */
/*
 * blocked.c: one thread stands still, inside the loader (a constructor; a callback of
 * dl_iterate_phdr), inside the allocator, or wherever a signal meets it. Meanwhile all others go on
 * allocating, by paths that nobody has taken before: or the program says BLOCKED.
 */
#include "subject.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { WORKERS = 3, DEPTH = 60, SIZE = 201, STOP = 77777, STOPS = 50, LONGEST_MS = 8000 };

static int stopped, gone_on, go, over; /* of the one that stands still */
static int start_work;                 /* how many rounds workers may have begun */
static int rounds_done[WORKERS];

static int load(const int *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void store(int *word, int value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void wait_a_moment(void) {
    const struct timespec moment = {.tv_nsec = 200000};
    nanosleep(&moment, NULL);
}

static void wait_for(const int *word, int value) {
    for (int i = 0; load(word) < value; i++) {
        if (i > 5 * LONGEST_MS) {
            say("BLOCKED\n");
            _exit(1);
        }
        wait_a_moment();
    }
}

/* --- the others ------------------------------------------------------------------------------- */

/* Each its own code, so that its return addresses are new when it is first called. */
#define STEP(n)                                                                                    \
    NOINLINE static void step_##n(int depth, size_t size);                                         \
    static void step_##n(int depth, size_t size) {                                                 \
        next_step(depth, size);                                                                    \
        __asm__ volatile("" : : "i"(n));                                                           \
    }

static void next_step(int depth, size_t size);
STEP(0)
STEP(1)
STEP(2)
STEP(3)
STEP(4)
STEP(5)
STEP(6)
STEP(7)

static void (*const steps[8])(int depth, size_t size) = {step_0, step_1, step_2, step_3,
                                                         step_4, step_5, step_6, step_7};

static __thread unsigned turn;

NOINLINE static void next_step(int depth, size_t size) {
    if (depth == 0) {
        void *block = malloc(size);
        keep(block);
        free(block);
    } else {
        turn = turn * 1103515245 + 12345;
        steps[turn >> 16 & 7](depth - 1, size);
    }
    __asm__ volatile("");
}

static int compare(const void *a, const void *b) {
    next_step(1, SIZE + 2); /* by way of the C library */
    return *(const int *)a - *(const int *)b;
}

static void work_once(size_t size) {
    int numbers[2] = {2, 1};
    next_step(DEPTH, size);
    qsort(numbers, 2, sizeof numbers[0], compare);
}

static void *work(void *argument) {
    int *done = argument;
    while (!load(&over)) {
        if (*done < load(&start_work)) {
            work_once(SIZE);
            store(done, *done + 1);
        } else {
            wait_a_moment();
        }
    }
    return NULL;
}

/* All workers do so many rounds more. */
static void work_on(int rounds) {
    int target = load(&start_work) + rounds;
    store(&start_work, target);
    for (int i = 0; i < WORKERS; i++) {
        wait_for(&rounds_done[i], target);
    }
}

/* --- the one ---------------------------------------------------------------------------------- */

/* Called by still.c's constructor, too. */
__attribute__((visibility("default"))) void blocked_stand_still(void) {
    store(&stopped, load(&stopped) + 1);
    while (!load(&go)) {
        wait_a_moment();
    }
    store(&gone_on, load(&gone_on) + 1);
}

static void *in_constructor(void *library) {
    check(dlopen(library, RTLD_NOW) != NULL, "dlopen");
    return NULL;
}

static int callback(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)info;
    (void)size;
    (void)argument;
    blocked_stand_still();
    return 1;
}

static void *in_callback(void *argument) {
    dl_iterate_phdr(callback, NULL);
    return argument;
}

static void *in_malloc(void *argument) {
    void *block = malloc(STOP);
    keep(block);
    free(block);
    return argument;
}

static void on_signal(int signal) {
    (void)signal;
    blocked_stand_still();
}

static void *anywhere(void *argument) {
    while (!load(&over)) {
        work_once(SIZE + 4);
    }
    return argument;
}

/* --- main ------------------------------------------------------------------------------------- */

static void stop_again_and_again(pthread_t thread) {
    for (int i = 0; i < STOPS; i++) {
        store(&go, 0);
        pthread_kill(thread, SIGUSR1);
        wait_for(&stopped, i + 1);
        work_on(20);
        store(&go, 1);
        wait_for(&gone_on, i + 1);
    }
}

int main(int argc, char **argv) {
    const char *how = argv[1];
    pthread_t workers[WORKERS];
    pthread_t one;
    int *allocator_stopped = dlsym(RTLD_DEFAULT, "bump_stopped");
    int *allocator_go = dlsym(RTLD_DEFAULT, "bump_go");
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < WORKERS; i++) {
        pthread_create(&workers[i], NULL, work, &rounds_done[i]);
    }
    if (strcmp(how, "constructor") == 0 && argc == 3) {
        pthread_create(&one, NULL, in_constructor, argv[2]);
        wait_for(&stopped, 1);
        work_on(1000);
    } else if (strcmp(how, "callback") == 0) {
        pthread_create(&one, NULL, in_callback, NULL);
        wait_for(&stopped, 1);
        work_on(1000);
    } else if (strcmp(how, "malloc") == 0) {
        pthread_create(&one, NULL, in_malloc, NULL);
        wait_for(allocator_stopped, 1);
        work_on(1000);
        store(allocator_go, 1);
    } else {
        pthread_create(&one, NULL, anywhere, NULL);
        stop_again_and_again(one);
    }
    store(&go, 1);
    store(&over, 1);
    pthread_join(one, NULL);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i], NULL);
    }
    say("done\n");
    return 3;
}
