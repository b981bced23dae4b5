/* SPDX-License-Identifier: MIT */
/*
 * libc.c WAY: every function that allocates, a known number of times, on threads, in handlers, in a
 * forked child, after main; ending as WAY says: return, exit, _exit, quick, exec (of the words
 * behind it: itself, with "again"). A block of calloc that is not clear ends it with status 1, else
 * it is 3.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

/* Through a volatile pointer, else the compiler leaves out what nobody needs. */
static void *volatile block;
static volatile size_t too_many;

/* 7 allocations of 10 + 21 + 100 + 50 + 64 + 48 + 1 = 294 bytes, 7 frees. */
KEPT void use_each(void) {
    void *placed = NULL;
    block = malloc(10);
    block = realloc(block, 100);
    free(block);
    block = calloc(3, 7);
    free(block);
    if (posix_memalign(&placed, 64, 50) != 0) {
        abort();
    }
    free(placed);
    block = aligned_alloc(32, 64);
    free(block);
    block = memalign(16, 48);
    free(block);
    block = valloc(1);
    free(block);
}

KEPT void use(int times) {
    for (int i = 0; i < times; i++) {
        use_each();
    }
}

/* Blocks of sizes from bytes to mappings of their own, whose memory was used before. */
KEPT void check_clear(void) {
    for (size_t size = 24; size < (4u << 20); size *= 3) {
        unsigned char *memory = malloc(size);
        size_t wrong = 0;
        memset(memory, 0xff, size);
        block = memory;
        free(block);
        memory = calloc(size, 1);
        block = memory;
        for (size_t i = 0; i < size; i++) {
            wrong += ((volatile unsigned char *)memory)[i];
        }
        free(block);
        if (wrong != 0) {
            _exit(1);
        }
    }
    too_many = SIZE_MAX / 2;
    block = calloc(too_many, 3);
    if (block != NULL) {
        _exit(1);
    }
}

KEPT void *on_thread(void *unused) {
    use(100);
    return unused;
}

static void handle(int signal) {
    (void)signal;
    use(10);
}

KEPT void at_exit(void) {
    use(3);
}

__attribute__((destructor)) KEPT void destroy(void) {
    use(4);
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "return";
    pthread_t thread;
    pid_t child;
    int status;
    use(1000);
    check_clear();
    if (strcmp(way, "again") == 0) {
        return 3;
    }
    pthread_create(&thread, NULL, on_thread, NULL);
    pthread_join(thread, NULL);
    signal(SIGUSR1, handle);
    raise(SIGUSR1);
    child = fork();
    if (child == 0) {
        use(20);
        _exit(0);
    }
    waitpid(child, &status, 0);
    atexit(at_exit);
    at_quick_exit(at_exit);
    if (status != 0) {
        _exit(2);
    }
    if (strcmp(way, "exec") == 0) {
        execv(arguments[2], arguments + 2);
    } else if (strcmp(way, "exit") == 0) {
        exit(3);
    } else if (strcmp(way, "_exit") == 0) {
        _exit(3);
    } else if (strcmp(way, "quick") == 0) {
        quick_exit(3);
    }
    return 3;
}
