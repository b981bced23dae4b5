/* SPDX-License-Identifier: MIT */
/* daemon.c: a forked child goes on when the program has ended, does a little more, and ends. */
#include <stdlib.h>
#include <unistd.h>

static void take(size_t size, int count) {
    for (int i = 0; i < count; i++) {
        char *volatile block = malloc(size);
        (void)block;
    }
}

int main(void) {
    int end[2];
    char byte;
    take(10001, 1);
    if (pipe(end) != 0) {
        return 2;
    }
    if (fork() == 0) {
        close(end[1]);
        take(101, 10);
        (void)!read(end[0], &byte, 1); /* until the parent has ended */
        usleep(300000);                /* and its profile is written */
        take(103, 1);
        _exit(0);
    }
    usleep(20000);
    return 0;
}
