/* SPDX-License-Identifier: MIT */
/*
 * workers.c: `workers COUNT BLOCKS EARLY`: a daemon that starts as root and forks workers which go
 * on as nobody; each allocates BLOCKS blocks of 1,000 bytes and frees them, EARLY of them while it
 * is root still. Prints what it did in one line a process.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, BLOCK = 1000 };

static __attribute__((noinline)) void work(int blocks) {
    void **kept = calloc((size_t)blocks + 1, sizeof *kept);
    for (int i = 0; i < blocks; i++) {
        kept[i] = malloc(BLOCK);
        memset(kept[i], 1, BLOCK);
    }
    for (int i = 0; i < blocks; i++) {
        free(kept[i]);
    }
    free(kept);
}

static int worker(int blocks, int early) {
    if (early > 0) {
        work(early);
    }
    if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0) {
        return 77;
    }
    work(blocks - early);
    return getuid() == NOBODY ? 0 : 1;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 2;
    int blocks = argc > 2 ? atoi(argv[2]) : 5000;
    int early = argc > 3 ? atoi(argv[3]) : 0;
    int worst = 0;
    for (int i = 0; i < count; i++) {
        if (fork() == 0) {
            exit(worker(blocks, early));
        }
    }
    for (int i = 0; i < count; i++) {
        int status;
        wait(&status);
        printf("worker: status %d\n", status);
        worst = WIFEXITED(status) && WEXITSTATUS(status) > worst ? WEXITSTATUS(status) : worst;
    }
    return worst;
}
