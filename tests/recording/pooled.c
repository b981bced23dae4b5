/* SPDX-License-Identifier: MIT */
/* pooled.c: objects of a pool, of 64 and 4096 bytes in turn, half of them freed. For pooled.py. */
#include "memtrace/memtrace.h"

#include <stdlib.h>

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 1000;
    char *arena = malloc((size_t)count * 64);
    for (long i = 0; i < count; i++) {
        MEMTRACE_ALLOC("arena", arena + i * 64, i % 100 == 0 ? 4096 : 64);
    }
    for (long i = 0; i < count; i += 2) {
        MEMTRACE_FREE("arena", arena + i * 64);
    }
    free(arena);
    return 0;
}
