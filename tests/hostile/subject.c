/* SPDX-License-Identifier: MIT */
/*
 * subject.c [wait|child]: every text that a program can put into a profile or a recording holds
 * marks (Q0ZZ, Q1ZZ, ...), which hostile.py replaces by what no terminal should see. Built by it.
 */
#include "memtrace/memtrace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARKS "Q0ZZQ1ZZQ2ZZQ3ZZQ4ZZQ5ZZ"

void *library_call(size_t size);

static void *volatile kept[16];

__attribute__((noinline)) static void leak_Q0ZZQ1ZZQ2ZZQ3ZZQ4ZZQ5ZZ(size_t size) {
    kept[0] = malloc(size);
    kept[1] = library_call(size + 1);
    for (int i = 0; i < 500; i++) {
        kept[2] = malloc(64);
        free(kept[2]);
    }
}

static void *thread_Q0ZZQ1ZZQ2ZZQ3ZZQ4ZZQ5ZZ(void *number) {
    static const char names[3][32] = {"a" MARKS, "bQ3ZZQ4ZZ", "c" MARKS};
    memtrace_name_thread(names[(size_t)number]);
    kept[3 + (size_t)number] = malloc(3000);
    free(kept[0]);
    kept[0] = NULL;
    return number;
}

static void use_everything(void) {
    uint64_t scope;
    pthread_t thread;
    memtrace_mark("mark" MARKS);
    scope = memtrace_scope_begin("scope" MARKS);
    leak_Q0ZZQ1ZZQ2ZZQ3ZZQ4ZZQ5ZZ(100000);
    memtrace_scope_end(scope);
    memtrace_alloc("pool" MARKS, (const void *)kept, 4000);
    kept[8] = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, thread_Q0ZZQ1ZZQ2ZZQ3ZZQ4ZZQ5ZZ, (void *)i);
        pthread_join(thread, NULL);
    }
    memtrace_mark("last" MARKS);
    memtrace_snapshot();
}

int main(int argc, char **argv) {
    use_everything();
    if (argc > 1 && strcmp(argv[1], "wait") == 0) {
        printf("%p\n", kept[1]);
        fflush(stdout);
        pause();
    }
    if (argc > 1 && strcmp(argv[1], "parent") == 0) {
        for (int i = 0; i < 2; i++) {
            if (fork() == 0) {
                execl("/proc/self/exe", "child" MARKS, "child", "argument" MARKS, NULL);
                _exit(1);
            }
            wait(NULL);
        }
        if (fork() == 0) { /* a light child */
            kept[9] = malloc(200000);
            _exit(0);
        }
        wait(NULL);
    }
    return 0;
}
