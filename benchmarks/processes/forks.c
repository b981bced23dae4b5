/* SPDX-License-Identifier: MIT */
/*
 * forks.c: `forks CHILDREN BLOCKS` forks children one after the other; each allocates and frees
 * BLOCKS blocks and exits. Prints the milliseconds a child took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS_OF_PARENT = 1000, BLOCK = 100 };

static void child(int blocks) {
    for (int i = 0; i < blocks; i++) {
        void *volatile block = malloc(BLOCK);
        free(block);
    }
    _exit(0);
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    int children = argc > 1 ? atoi(argv[1]) : 300;
    int blocks = argc > 2 ? atoi(argv[2]) : 1;
    double start;
    for (int i = 0; i < BLOCKS_OF_PARENT; i++) {
        void *volatile block = malloc(BLOCK);
        (void)block;
    }
    start = now_ms();
    for (int i = 0; i < children; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            child(blocks);
        }
        waitpid(pid, NULL, 0);
    }
    printf("%.3f\n", (now_ms() - start) / children);
    return 0;
}
