/* SPDX-License-Identifier: MIT */
/* A program full of words that must not be told: for anonymize.py. */
#include "memtrace/memtrace.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *secret_inner(size_t size) {
    return malloc(size);
}

__attribute__((noinline)) void *secret_outer(size_t size) {
    void *block = secret_inner(size);
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}

static void *secret_thread(void *argument) {
    memtrace_name_thread("secret-thread");
    for (int i = 0; i < 100; i++)
        free(secret_outer(1000 + (size_t)i));
    return argument;
}

int main(int argc, char **argv) {
    pthread_t thread;
    void *kept = secret_outer(12345);
    char label[64];
    snprintf(label, sizeof label, "secret-mark-%s", argc > 1 ? argv[1] : "none");
    MEMTRACE_MARK(label);
    uint64_t scope = MEMTRACE_SCOPE_BEGIN("secret-scope");
    MEMTRACE_ALLOC("secret-pool", kept, 77);
    pthread_create(&thread, NULL, secret_thread, NULL);
    pthread_join(thread, NULL);
    MEMTRACE_SCOPE_END(scope);
    free(secret_outer(99));
    return kept == NULL;
}
