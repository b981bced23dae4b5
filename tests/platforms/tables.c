/* SPDX-License-Identifier: MIT */
/* tables.c: for foreign.py. What a program of C allocates itself, and what the C library does for
 * it in functions that may have no unwind tables: 100 blocks of 10 bytes, 100 of 6, a line of a
 * file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT __attribute__((noinline, noclone))

static char *volatile kept[200];
static size_t count;

KEPT void leaf(size_t size) {
    kept[count++] = malloc(size);
}

KEPT void middle(size_t size) {
    volatile char room[100];
    room[0] = 0;
    leaf(size + (size_t)room[0]);
    room[1] = 0;
}

KEPT void outer(void) {
    middle(10);
    kept[count++] = strdup("hello");
}

KEPT void read_line(const char *path) {
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL || getline(&line, &size, file) < 0) {
        exit(2);
    }
    free(line);
    fclose(file);
}

int main(int argc, char **argv) {
    for (int i = 0; i < 100; i++) {
        outer();
    }
    read_line(argv[argc - 1]);
    return 0;
}
