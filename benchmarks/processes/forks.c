/* SPDX-License-Identifier: MIT */
/*
 * forks.c: `forks CHILDREN BLOCKS [NODES]` forks children one after the other; each allocates and
 * frees BLOCKS blocks and exits. With NODES the parent has a binary tree of so many, each made on a
 * call path of its own, which is two contexts. Prints the milliseconds a child took.
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

struct node {
    struct node *left, *right;
};

static __attribute__((noinline, noclone)) struct node *tree(long nodes) {
    struct node *node = nodes > 0 ? malloc(sizeof *node) : NULL;
    if (!node)
        return NULL;
    node->left = tree((nodes - 1) / 2);
    __asm__ volatile("" ::: "memory"); /* two calls stay two call sites */
    node->right = tree(nodes - 1 - (nodes - 1) / 2);
    return node;
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    int children = argc > 1 ? atoi(argv[1]) : 300;
    int blocks = argc > 2 ? atoi(argv[2]) : 1;
    struct node *volatile grown = tree(argc > 3 ? atol(argv[3]) : 0);
    double start;
    (void)grown;
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
