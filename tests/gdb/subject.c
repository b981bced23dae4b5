/* SPDX-License-Identifier: MIT */
/* subject.c: blocks of every kind, for gdb to ask about where stop_here() is called. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *small, *inside, *large, *freed, *on_stack;
char in_data[64];
struct node {
    int value;
    struct node *next;
} * list;

static inline __attribute__((always_inline)) char *fresh(size_t size) {
    return malloc(size); /* fresh */
}

__attribute__((noinline)) static char *keep(size_t size) {
    char *made = fresh(size); /* keep */
    memset(made, 1, size);
    return made;
}

__attribute__((noinline)) void stop_here(int wait) {
    puts("ready");
    fflush(stdout);
    if (wait)
        pause();
}

int main(int argc, char **argv) {
    char local[64] = "";
    on_stack = local;
    small = keep(100); /* main */
    inside = small + 40;
    large = keep(5000000);
    list = calloc(1, sizeof *list);
    freed = keep(700);
    free(freed);
    stop_here(argc > 1);
    return argv[0] == on_stack;
}
