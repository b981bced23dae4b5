/* SPDX-License-Identifier: MIT */
/* told.c FD...: a process for each descriptor, the first one the parent of the others. Each does
 * what it is told there: "COUNT SIZE" allocates and frees so many blocks, one after the other, and
 * says so by a line; anything else ends it. Meanwhile it allocates small ones now and then, and so
 * follows what `memtrace control` asks for. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocate(unsigned long count, unsigned long bytes) {
    while (count-- > 0) {
        char *block = malloc(bytes);
        memset(block, 1, 1);
        free(block);
    }
}

static int obey(int fd) {
    struct pollfd told = {fd, POLLIN, 0};
    unsigned long count = 5000; /* so that a child is worth a recording of its own */
    unsigned long bytes = 32;
    char line[64];
    do {
        ssize_t size;
        allocate(count, bytes);
        if (bytes != 32 && write(fd, "done\n", 5) != 5) {
            return 1;
        }
        while (poll(&told, 1, 5) == 0) {
            allocate(1, 32);
        }
        size = read(fd, line, sizeof line - 1);
        line[size > 0 ? size : 0] = '\0';
    } while (sscanf(line, "%lu %lu", &count, &bytes) == 2);
    return 0;
}

int main(int argc, char **argv) {
    for (int i = 2; i < argc; i++) {
        if (fork() == 0) {
            return obey(atoi(argv[i]));
        }
    }
    obey(atoi(argv[1]));
    while (wait(NULL) > 0) {
    }
    return 0;
}
