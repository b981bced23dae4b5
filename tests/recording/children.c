/* SPDX-License-Identifier: MIT */
/*
 * children.c HOW: a parent that allocates, starts a child by HOW, waits for it and allocates again.
 * The child frees what it was born with, where it was, and allocates on its own. Each says what it
 * did: "did PID allocations A frees F".
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARENT_BLOCKS = 100, CHILD_BLOCKS = 70 };

extern char **environ;
static void *blocks[PARENT_BLOCKS];

/* Without stdio, which allocates. */
static void tell(int allocations, int frees) {
    char line[100];
    int length = snprintf(line, sizeof line, "did %d allocations %d frees %d\n", (int)getpid(),
                          allocations, frees);
    if (write(1, line, (size_t)length) != length) {
        _exit(9);
    }
}

__attribute__((noinline)) static void allocate(void **into, int count) {
    for (int i = 0; i < count; i++) {
        into[i] = malloc((size_t)i + 1);
    }
}

static void release(void **from, int count) {
    for (int i = 0; i < count; i++) {
        free(from[i]);
    }
}

static void live_as_child(int was_forked) {
    static void *own[CHILD_BLOCKS];
    allocate(own, CHILD_BLOCKS);
    release(own, CHILD_BLOCKS / 2);
    if (was_forked) {
        release(blocks, PARENT_BLOCKS / 2);
    }
    tell(CHILD_BLOCKS, CHILD_BLOCKS / 2 + (was_forked ? PARENT_BLOCKS / 2 : 0));
}

static pid_t start_child(const char *how, char *program) {
    char *const arguments[] = {program, "child", NULL};
    pid_t pid = -1;
    if (strcmp(how, "spawn") == 0) {
        return posix_spawn(&pid, program, NULL, NULL, arguments, environ) == 0 ? pid : -1;
    }
    pid = strcmp(how, "vfork") == 0 ? vfork() : fork();
    if (pid == 0) {
        if (strcmp(how, "fork") == 0) {
            live_as_child(1);
            exit(0);
        }
        execve(program, arguments, environ);
        _exit(8);
    }
    return pid;
}

int main(int argc, char **argv) {
    void *more[PARENT_BLOCKS];
    int status = 0;
    if (argc == 2 && strcmp(argv[1], "child") == 0) {
        live_as_child(0);
        return 0;
    }
    allocate(blocks, PARENT_BLOCKS);
    if (waitpid(start_child(argv[1], argv[0]), &status, 0) < 0 || status != 0) {
        return 7;
    }
    allocate(more, PARENT_BLOCKS);
    release(more, PARENT_BLOCKS);
    tell(2 * PARENT_BLOCKS, PARENT_BLOCKS);
    return 0;
}
