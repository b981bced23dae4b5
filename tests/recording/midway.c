/* SPDX-License-Identifier: MIT */
/*
 * midway.c: does what the lines of its standard input say, and answers each with how many blocks it
 * holds and how many bytes these have:
 *   a N  allocates N blocks      f N  frees the last N      t N  allocates and frees, N times
 *   h N  tells of N blocks of an allocator of its own, as the heap's and as a pool's; u N takes
 * back the last N of each w MS allocates and frees for so long, now and then k    forks a child
 * that frees what it inherited and allocates, and ends x    replaces itself by exec, and allocates
 * nothing any more
 */
#include "memtrace/memtrace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1 << 20 };

static void *held[MOST];
static long count, bytes;

static size_t size_of(long place) {
    return 16 + (size_t)(place % 100) * 24;
}

static __attribute__((noinline)) void *get(size_t size) {
    return malloc(size);
}

static __attribute__((noinline)) void *get_for_a_moment(size_t size) {
    return malloc(size);
}

static void allocate(long number) {
    for (long i = 0; i < number; i++) {
        held[count] = get(size_of(count));
        bytes += (long)size_of(count++);
    }
}

static void release(long number) {
    for (long i = 0; i < number; i++) {
        free(held[--count]);
        bytes -= (long)size_of(count);
    }
}

enum { OWN = 100, OWN_SIZE = 48 };
static char own[2][OWN][OWN_SIZE] __attribute__((aligned(16))); /* the heap's, the pool's */
static long told;

static void tell(long number) {
    for (long i = 0; i < number; i++, told++) {
        MEMTRACE_ALLOC(NULL, own[0][told], OWN_SIZE);
        MEMTRACE_ALLOC("own", own[1][told], OWN_SIZE - 1);
    }
}

static void take_back(long number) {
    for (long i = 0; i < number; i++) {
        told--;
        MEMTRACE_FREE(NULL, own[0][told]);
        MEMTRACE_FREE("own", own[1][told]);
    }
}

static void pass(long number) {
    for (long i = 0; i < number; i++) {
        free(get_for_a_moment(40));
    }
}

static void wait_busily(long ms) {
    for (long i = 0; i < ms; i++) {
        usleep(1000);
        pass(1);
    }
}

static void fork_one(void) {
    pid_t child = fork();
    if (child == 0) {
        release(count / 2);
        allocate(100);
        _exit(count > 100 ? 0 : 1);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
    static char line[64], in[4096], out[4096];
    setvbuf(stdin, in, _IOFBF, sizeof in); /* no blocks but those that are told of */
    setvbuf(stdout, out, _IOLBF, sizeof out);
    while (argc == 1 && fgets(line, sizeof line, stdin) != NULL) {
        long number = strtol(line + 1, NULL, 10);
        switch (line[0]) {
        case 'a':
            allocate(number);
            break;
        case 'f':
            release(number);
            break;
        case 't':
            pass(number);
            break;
        case 'h':
            tell(number);
            break;
        case 'u':
            take_back(number);
            break;
        case 'w':
            wait_busily(number);
            break;
        case 'k':
            fork_one();
            break;
        default:
            execl("/proc/self/exe", argv[0], "after", (char *)NULL);
        }
        printf("%ld %ld\n", count + told, bytes + told * OWN_SIZE);
    }
    return 0;
}
