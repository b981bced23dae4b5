/* SPDX-License-Identifier: MIT */
/* mallopt.c: sets the allocator from main, a thread, a signal handler and a child; prints what each
 * call returned. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int results[8];

static void *set_in_thread(void *argument) {
    results[3] = mallopt(M_TRIM_THRESHOLD, -1);
    return argument;
}

static void set_in_handler(int number) {
    (void)number;
    results[4] = mallopt(M_TOP_PAD, 65536);
}

int main(void) {
    pthread_t thread;
    pid_t child;
    void *volatile block = malloc(10);
    results[0] = mallopt(M_MMAP_THRESHOLD, 1 << 20);
    results[1] = mallopt(M_MXFAST, 1 << 20); /* more than it takes */
    results[2] = mallopt(12345, 6);          /* none of its parameters */
    pthread_create(&thread, NULL, set_in_thread, NULL);
    pthread_join(thread, NULL);
    signal(SIGUSR1, set_in_handler);
    raise(SIGUSR1);
    free(block);
    child = fork();
    if (child == 0) {
        results[5] = mallopt(M_ARENA_MAX, 1);
        _exit(results[5] == 1 ? 0 : 1);
    }
    waitpid(child, &results[5], 0);
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        printf("%d ", results[i]);
    }
    return 0;
}
