/* SPDX-License-Identifier: MIT */
/* faults.c FAULT: a program with one fault in its use of memory, for findings.py. */
#include "memtrace/memtrace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20, KEPT = 50, LISTS = 40, STEPS = 200, FOREIGN = 20000 };

static void *kept[ROUNDS * KEPT];
static void *handed_over[FOREIGN];

__attribute__((noinline)) static void remember(int place) {
    kept[place] = malloc(100);
}

__attribute__((noinline)) static void use_for_a_while(void) {
    void *blocks[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = malloc(200);
    }
    for (int i = 0; i < 64; i++) {
        free(blocks[i]);
    }
}

static void work(void) {
    for (int i = 0; i < 20; i++) {
        use_for_a_while();
    }
}

/* Each round remembers something, and nobody forgets it. */
static void grow_with_marks(void) {
    for (int round = 0; round < ROUNDS; round++) {
        MEMTRACE_MARK("round");
        for (int i = 0; i < KEPT; i++) {
            remember(round * KEPT + i);
        }
        work();
    }
}

/* By the program's own name for malloc. */
__attribute__((noinline)) static void *xmalloc(size_t size) {
    return malloc(size);
}

__attribute__((noinline)) static void remember_wrapped(int place) {
    kept[place] = xmalloc(100);
}

static void keep_wrapped(void) {
    for (int i = 0; i < ROUNDS * KEPT; i++) {
        remember_wrapped(i);
    }
}

/* Many small blocks, and one that is larger than all of them. */
__attribute__((noinline)) static void hold_small(void) {
    for (int i = 0; i < FOREIGN; i++) {
        handed_over[i] = malloc(16);
    }
}

__attribute__((noinline)) static void hold_large(void) {
    kept[0] = malloc(600000);
}

/* The same, all of it at the start. */
static void keep_from_start(void) {
    for (int i = 0; i < ROUNDS * KEPT; i++) {
        remember(i);
    }
    for (int round = 0; round < ROUNDS; round++) {
        work();
    }
}

__attribute__((noinline)) static char *append(char *text, size_t size) {
    return realloc(text, size);
}

static void grow_step_by_step(void) {
    for (int list = 0; list < LISTS; list++) {
        char *text = malloc(100);
        for (size_t step = 1; step <= STEPS; step++) {
            text = append(text, 100 + step * 100);
            text[step] = 'x';
        }
        free(text);
    }
}

static void *free_all(void *unused) {
    for (int i = 0; i < FOREIGN; i++) {
        free(handed_over[i]);
    }
    return unused;
}

static void free_elsewhere(void) {
    pthread_t thread;
    for (int i = 0; i < FOREIGN; i++) {
        handed_over[i] = malloc(64);
    }
    pthread_create(&thread, NULL, free_all, NULL);
    pthread_join(thread, NULL);
}

int main(int count, char **words) {
    const char *fault = count > 1 ? words[1] : "nothing";
    work();
    if (strcmp(fault, "marks") == 0) {
        grow_with_marks();
    } else if (strcmp(fault, "start") == 0) {
        keep_from_start();
    } else if (strcmp(fault, "wrapped") == 0) {
        keep_wrapped();
    } else if (strcmp(fault, "small") == 0) {
        hold_small();
        hold_large();
    } else if (strcmp(fault, "append") == 0) {
        grow_step_by_step();
    } else if (strcmp(fault, "threads") == 0) {
        free_elsewhere();
    }
    work();
    return 0;
}
