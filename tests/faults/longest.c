/* SPDX-License-Identifier: MIT */
/* longest.c: the longest environment with which another program can be started, by exec and by
 * spawn: says how many bytes its filling may have. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 100000, PIECES = 40 };

static char *environment[PIECES + 2] = {"PATH=/bin"};
static char filling[PIECES][PIECE + 2];

static void fill(size_t bytes) {
    int i = 0;
    for (; bytes != 0; i++) {
        size_t size = bytes < PIECE ? bytes : PIECE;
        memset(filling[i], 'x', size);
        filling[i][1] = '=';
        filling[i][size] = '\0';
        environment[i + 1] = filling[i];
        bytes -= size;
    }
    environment[i + 1] = NULL;
}

static int starts(int spawns) {
    char *const words[] = {"true", NULL};
    int status = -1;
    pid_t child;
    if (spawns) {
        if (posix_spawn(&child, "/bin/true", NULL, NULL, words, environment) != 0) {
            return 0;
        }
    } else if ((child = vfork()) == 0) {
        execve("/bin/true", words, environment);
        _exit(9);
    }
    waitpid(child, &status, 0);
    return status == 0;
}

int main(void) {
    struct rlimit limit = {4 << 20, 4 << 20}; /* of which a quarter is for words */
    setrlimit(RLIMIT_STACK, &limit);
    for (int spawns = 0; spawns < 2; spawns++) {
        size_t low = 10;
        size_t high = PIECE * PIECES;
        while (high - low > 1) {
            size_t middle = low + (high - low) / 2;
            fill(middle);
            *(starts(spawns) ? &low : &high) = middle;
        }
        printf("%zu\n", low);
    }
    return 3;
}
