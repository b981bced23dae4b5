/* SPDX-License-Identifier: MIT */
/*
 * recursion.c COUNT DEPTH: random binary recursion: COUNT allocations, each by a call path of its
 * own, nearly, that is DEPTH calls deep. Run by many.py.
 */
#include <stdint.h>
#include <stdlib.h>

static void *volatile kept;

static void go_left(uint64_t way, int depth);

static void go_right(uint64_t way, int depth) {
    if (depth == 0) {
        kept = malloc(16);
    } else if ((way & 1) != 0) {
        go_left(way >> 1, depth - 1);
    } else {
        go_right(way >> 1, depth - 1);
    }
    __asm__ volatile(""); /* no tail call */
}

static void go_left(uint64_t way, int depth) {
    if (depth == 0) {
        kept = malloc(32);
    } else if ((way & 1) != 0) {
        go_right(way >> 1, depth - 1);
    } else {
        go_left(way >> 1, depth - 1);
    }
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    uint64_t random = 88172645463325252u;
    (void)argc;
    for (long i = atol(argv[1]); i > 0; i--) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        go_left(random >> 8, atoi(argv[2]));
    }
    return 0;
}
