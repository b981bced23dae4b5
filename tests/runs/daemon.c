/* SPDX-License-Identifier: MIT */
/* daemon.c [killed]: a forked child goes on when the program has ended, does a little more, and
 * ends (both are killed). */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void take(size_t size, int count) {
    for (int i = 0; i < count; i++) {
        char *volatile block = malloc(size);
        (void)block;
    }
}

int main(int count, char **arguments) {
    int end[2];
    (void)arguments;
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
        return count > 1 ? raise(SIGKILL) : 0;
    }
    usleep(20000);
    return count > 1 ? raise(SIGKILL) : 0;
}
