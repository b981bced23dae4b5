/* SPDX-License-Identifier: MIT */
/*
 * ending.c MICROSECONDS: the program ends, and so long after it another one that it started. (The
 * other: `ending MICROSECONDS FD`, where FD is a pipe of which the first one has the other end.)
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments) {
    char *volatile block = malloc(count > 2 ? 20001 : 10001);
    int to_child[2];
    int ready[2];
    char byte = 0;
    if (count > 2) {
        int fd = atoi(arguments[2]);
        /* The writing end of `ready` is two behind. */
        if (write(fd + 2, &byte, 1) == 1) {
            (void)!read(fd, &byte, 1);
        }
        usleep((unsigned)atoi(arguments[1]));
        return block == NULL;
    }
    if (pipe(to_child) != 0 || pipe(ready) != 0) {
        return 2;
    }
    if (fork() == 0) {
        char number[16];
        close(to_child[1]);
        dup2(ready[1], to_child[0] + 2);
        snprintf(number, sizeof number, "%d", to_child[0]);
        execl("/proc/self/exe", "ending", arguments[1], number, (char *)NULL);
        return 2;
    }
    close(to_child[0]);
    close(ready[1]);
    return read(ready[0], &byte, 1) != 1 || block == NULL;
}
