/* SPDX-License-Identifier: MIT */
/*
 * expect.c: expectations that hold and that do not, each way a block can be left, in C and
 * (compiled as expect.cpp) in C++. For expect.py: a handler counts what is heard of; WRONG is
 * printed where it is not what it should be. Without the runtime ("none" as argument) nothing may
 * be heard.
 */
#include "memtrace/expect.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned heard;
static struct memtrace_expectation last;
static char last_message[4096];
static int counting;

static void hear(const struct memtrace_expectation *expectation) {
    __atomic_fetch_add(&heard, 1, __ATOMIC_RELAXED);
    last = *expectation;
    snprintf(last_message, sizeof last_message, "%s", expectation->message);
}

/* So many failures since the last call. */
static void want(unsigned expected, const char *what) {
    unsigned due = counting ? expected : 0;
    if (heard != due) {
        printf("WRONG %s: %u failures, expected %u\n", what, heard, due);
    }
    heard = 0;
}

static void want_found(uint64_t allocations, uint64_t bytes, const char *what) {
    if (counting && (last.found.allocations != allocations || last.found.bytes != bytes)) {
        printf("WRONG %s: found %llu allocations of %llu bytes\n", what,
               (unsigned long long)last.found.allocations, (unsigned long long)last.found.bytes);
    }
}

static void want_leaked(uint64_t blocks, uint64_t bytes, const char *what) {
    if (counting && (last.found.leaked_blocks != blocks || last.found.leaked_bytes != bytes)) {
        printf("WRONG %s: leaked %llu blocks of %llu bytes\n", what,
               (unsigned long long)last.found.leaked_blocks,
               (unsigned long long)last.found.leaked_bytes);
    }
}

__attribute__((noinline)) void *take(size_t size) {
    void *volatile block = malloc(size);
    return block;
}

static void simple(void) {
    void *before = take(10);
    MEMTRACE_EXPECT_NO_ALLOC {
        free(before);
    }
    want(0, "no allocation");
    MEMTRACE_EXPECT_NO_ALLOC {
        free(take(100));
        free(take(20));
    }
    want(1, "two allocations");
    want_found(2, 120, "two allocations");
    MEMTRACE_EXPECT_ALLOCATIONS_AT_MOST(2) {
        free(take(100));
        free(take(20));
    }
    want(0, "at most two");
    MEMTRACE_EXPECT_ALLOCATIONS_AT_MOST(1) {
        free(take(100));
        free(realloc(take(20), 3000)); /* a reallocation is one */
    }
    want(1, "at most one");
    want_found(3, 3120, "at most one");
    MEMTRACE_EXPECT_AT_MOST(120) {
        free(take(100));
        free(take(20));
    }
    want(0, "at most 120 bytes");
    MEMTRACE_EXPECT_AT_MOST(119) {
        free(take(100));
        free(calloc(4, 5));
    }
    want(1, "at most 119 bytes");
    want_found(2, 120, "at most 119 bytes");
}

static void *free_it(void *block) {
    free(block);
    return NULL;
}

static void in_thread(void *(*work)(void *), void *argument) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, argument);
    pthread_join(thread, NULL);
}

static void *allocate(void *argument) {
    *(void **)argument = take(1000);
    return NULL;
}

static void *expect_in_thread(void *argument) {
    MEMTRACE_EXPECT_NO_ALLOC {
        *(void **)argument = take(50);
    }
    return NULL;
}

static void leaks(void) {
    void *older = take(64);
    void *kept = NULL;
    void *other = NULL;
    MEMTRACE_EXPECT_NO_LEAK {
        for (int i = 0; i < 10000; i++) {
            free(take(24));
        }
    }
    want(0, "no leak");
    MEMTRACE_EXPECT_NO_LEAK {
        free(older); /* does not make up for what is kept */
        kept = take(64);
    }
    want(1, "a leak");
    want_leaked(1, 64, "a leak");
    MEMTRACE_EXPECT_NO_LEAK {
        kept = realloc(kept, 640); /* a new block, and it stays */
    }
    want(1, "a reallocation");
    want_leaked(1, 640, "a reallocation");
    free(kept);
    kept = take(77);
    MEMTRACE_EXPECT_NO_LEAK {
        void *given = take(33);
        free(kept);
        in_thread(free_it, given);   /* freed, by whomever */
        in_thread(allocate, &other); /* another thread's, not this block's */
        kept = NULL;
    }
    /* The C library keeps what a thread needs for the next one: the first may leave something. */
    heard = 0;
    free(other);
    MEMTRACE_EXPECT_NO_LEAK {
        void *given = take(33);
        in_thread(free_it, given);
        in_thread(allocate, &other);
    }
    free(other);
    if (counting && heard != 0 && strstr(last_message, "take") != NULL) {
        printf("WRONG other threads: %s\n", last_message);
    }
    heard = 0;
    in_thread(expect_in_thread, &other);
    want(1, "in another thread");
    free(other);
}

/* More blocks than the first table has room for, some of which stay, at addresses used again. */
static void many(void) {
    enum { BLOCKS = 5000 };
    static void *blocks[BLOCKS];
    uint64_t bytes = 0;
    unsigned count = 0;
    MEMTRACE_EXPECT_NO_LEAK {
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < BLOCKS; i++) {
                free(blocks[i]);
                blocks[i] = take((size_t)(1 + i % 500));
            }
        }
        for (int i = 0; i < BLOCKS; i++) {
            if (i % 3 != 0) {
                free(blocks[i]);
                blocks[i] = NULL;
            } else {
                count++;
                bytes += (uint64_t)(1 + i % 500);
            }
        }
    }
    want(1, "many");
    want_leaked(count, bytes, "many");
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
}

static void nested(void) {
    void *outer = NULL;
    void *inner = NULL;
    MEMTRACE_EXPECT_NO_LEAK {
        outer = take(5);
        MEMTRACE_EXPECT_NO_LEAK {
            inner = take(6);
            MEMTRACE_EXPECT_NO_ALLOC {
                heard += 0;
            }
        }
        want(1, "inside");
        want_leaked(1, 6, "inside");
        free(inner);
    }
    want(1, "outside");
    want_leaked(1, 5, "outside");
    free(outer);
}

static int leave_by_return(void) {
    MEMTRACE_EXPECT_NO_ALLOC {
        free(take(1));
        return 7;
    }
    return 0;
}

static jmp_buf away;

static void leave_by_longjmp(void) {
    MEMTRACE_EXPECT_NO_ALLOC {
        free(take(1));
        longjmp(away, 1);
    }
}

static void leaving(void) {
    int turns = 0;
    if (leave_by_return() != 7) {
        puts("WRONG return value");
    }
    want(1, "return");
    for (int i = 0; i < 3; i++) {
        MEMTRACE_EXPECT_NO_ALLOC {
            free(take(1));
            break; /* of the block, not of the loop */
        }
        turns++;
    }
    want(3, "break");
    if (turns != 3) {
        puts("WRONG break left the loop");
    }
    MEMTRACE_EXPECT_NO_ALLOC {
        free(take(1));
        goto out;
    }
out:
    want(1, "goto");
    MEMTRACE_EXPECT_ALLOCATIONS_AT_MOST(
        2) { /* the one that was left inside counts here, and goes */
        if (setjmp(away) == 0) {
            leave_by_longjmp();
        }
        free(take(1));
    }
    want(0, "longjmp");
    MEMTRACE_EXPECT_NO_ALLOC {
        turns++;
    }
    want(0, "after longjmp");
}

/* Its parent's blocks are not a child's, which has its own from then on. */
static void check_child(unsigned long missed) {
    int good = heard == 0 && memtrace_expect_not_measured() == missed + 1;
    MEMTRACE_EXPECT_NO_ALLOC {
        free(take(10));
    }
    _exit(good && heard == 1 ? 0 : 1);
}

static void forked(void) {
    unsigned long missed = memtrace_expect_not_measured();
    pid_t child = -1;
    int status = 0;
    MEMTRACE_EXPECT_NO_ALLOC {
        child = fork();
    }
    if (child == 0) {
        check_child(missed);
    }
    waitpid(child, &status, 0);
    if (counting && status != 0) {
        puts("WRONG in the child");
    }
    want(0, "fork");
}

/* 40 in each other: those beyond 32 are not judged. */
static void deep(int depth) {
    unsigned long missed = memtrace_expect_not_measured();
    MEMTRACE_EXPECT_NO_ALLOC {
        if (depth > 1) {
            deep(depth - 1);
        } else {
            free(take(1));
        }
    }
    if (depth == 40) {
        want(32, "deep");
        if (counting && memtrace_expect_not_measured() - missed != 8) {
            puts("WRONG number of blocks that were not measured");
        }
    }
}

static void stopped(void) {
    if (memtrace_available()) {
        memtrace_stop();
    }
    MEMTRACE_EXPECT_NO_ALLOC {
        free(take(1));
    }
    want(0, "stopped");
    if (memtrace_available()) {
        memtrace_start();
    }
}

#ifdef __cplusplus
#include <memory>
#include <stdexcept>
#include <vector>

static void cplusplus() {
    try {
        MEMTRACE_EXPECT_NO_ALLOC {
            auto number = std::make_unique<int>(3);
            throw std::runtime_error("out");
        }
    } catch (const std::exception &) {
    }
    want(1, "exception");
    std::vector<int> numbers;
    numbers.reserve(100);
    MEMTRACE_EXPECT_NO_ALLOC {
        for (int i = 0; i < 100; i++) {
            numbers.push_back(i);
        }
    }
    want(0, "reserved");
    MEMTRACE_EXPECT_AT_MOST(200 * sizeof(int)) {
        numbers.push_back(1);
    }
    want(0, "grown by doubling");
    MEMTRACE_EXPECT_NO_ALLOC {
        numbers.shrink_to_fit();
    }
    want(1, "shrunk");
}
#else
static void cplusplus(void) {
}
#endif

int main(int argc, char **argv) {
    counting = argc < 2 || strcmp(argv[1], "none") != 0;
    memtrace_expect_handle(hear);
    simple();
    leaks();
    many();
    nested();
    leaving();
    cplusplus();
    forked();
    deep(40);
    stopped();
    memtrace_expect_handle(NULL);
    heard = 0;
    MEMTRACE_EXPECT_ALLOCATIONS_AT_MOST(1) { /* for expect.py to look at */
        free(take(11));
        free(take(22));
    }
    printf("failures %lu, not measured %lu\n", memtrace_expect_failures(),
           memtrace_expect_not_measured());
    return 0;
}
