/* SPDX-License-Identifier: MIT */
/* micro.c: see micro.h. */
#include "benchmarks/micro/micro.h"

#include <fcntl.h>
#include <unistd.h>

void micro_measure_once(const char *name, long operations, void (*body)(void *), void *argument) {
    uint64_t start = bench_now_ns();
    body(argument);
    printf("%-58s %8.2f ns\n", name, (double)(bench_now_ns() - start) / (double)operations);
}

void micro_measure(const char *name, long operations, void (*body)(void *), void *argument) {
    double ns[MICRO_ROUNDS];
    body(argument);
    for (int round = 0; round < MICRO_ROUNDS; round++) {
        uint64_t start = bench_now_ns();
        body(argument);
        ns[round] = (double)(bench_now_ns() - start) / (double)operations;
    }
    printf("%-58s %8.2f ns\n", name, bench_median(ns, MICRO_ROUNDS));
}

void micro_open_space(struct space *space) {
    char path[] = "/dev/shm/memtrace-micro-XXXXXX";
    char elsewhere[] = "/tmp/memtrace-micro-XXXXXX";
    char *name = path;
    int fd = mkstemp(path);
    if (fd < 0) {
        name = elsewhere;
        fd = mkstemp(elsewhere);
    }
    if (fd < 0 || unlink(name) != 0 || space_open(space, fd, name) != 0) {
        fputs("micro: cannot make a region in /dev/shm or /tmp\n", stderr);
        exit(1);
    }
}
