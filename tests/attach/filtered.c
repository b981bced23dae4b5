/* SPDX-License-Identifier: MIT */
/*
 * filtered.c FILTER [CALL]: a program under seccomp filters of its own, for attach_test.py. It says
 * "ready", does a round of allocations, threads and a fork for each line that it reads, says
 * "done", and ends with status 3 when there is no more.
 *
 *   all           allows everything
 *   needed        allows what filtercalls.h lists, and what this program does itself, alone
 *   kill CALL, errno CALL, trap CALL    denies the system call of this number
 *   late CALL     kills for it from the first round on
 *   thread CALL   kills for it, in one thread only
 *   first CALL    the same in the first thread, and another one has no filter
 *   many          60 filters that allow everything, each another one
 *   strict        one thread in strict mode
 */
#include "collect/attach/filtercalls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOAD(field)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)

enum { BLOCKS = 500, SIZE = 1009 };

static const char *filter;
static unsigned call;

static void install(struct sock_filter *code, size_t count) {
    struct sock_fprog program = {.len = (unsigned short)count, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("prctl");
        exit(1);
    }
}

static void deny(unsigned number, unsigned answer) {
    struct sock_filter code[] = {LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                                 ANSWER(answer), ANSWER(SECCOMP_RET_ALLOW)};
    install(code, sizeof code / sizeof *code);
}

static void allow_many(void) {
    for (unsigned i = 0; i < 60; i++) {
        struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_IMM, i), LOAD(arch),
                                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 1),
                                     ANSWER(SECCOMP_RET_ALLOW), ANSWER(SECCOMP_RET_KILL_PROCESS)};
        install(code, sizeof code / sizeof *code);
    }
}

/* What it does itself: read, write, threads (in the list), fork, wait, and its end. */
static void allow_needed(void) {
    static const long own[] = {SYS_write, SYS_exit_group, SYS_wait4, SYS_futex,
                               SYS_clone, SYS_mmap,       SYS_munmap};
    enum { OWN = sizeof own / sizeof own[0] };
    struct sock_filter code[1 + 2 * (FILTERCALLS + OWN) + 1] = {LOAD(nr)};
    size_t at = 1;
    for (size_t i = 0; i < FILTERCALLS + OWN; i++) {
        long number = i < FILTERCALLS ? filtercalls[i].number : own[i - FILTERCALLS];
        code[at++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
        code[at++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
    }
    code[at++] = (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS);
    install(code, at);
}

static void *wait_filtered(void *go) {
    char byte;
    if (strcmp(filter, "strict") == 0) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        syscall(SYS_write, 1, "ready\n", 6);
    } else if (strcmp(filter, "first") != 0) {
        deny(call, SECCOMP_RET_KILL_PROCESS);
        write(1, "ready\n", 6);
    }
    syscall(SYS_read, *(int *)go, &byte, 1);
    return NULL;
}

static void *allocate(void *unused) {
    void *blocks[BLOCKS];
    (void)unused;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(SIZE);
        memset(blocks[i], i, SIZE);
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    return NULL;
}

static void do_round(void) {
    pthread_t thread;
    pid_t child;
    pthread_create(&thread, NULL, allocate, NULL);
    pthread_join(thread, NULL);
    child = fork();
    if (child == 0) {
        allocate(NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
    static int pipes[2];
    pthread_t thread;
    char byte;
    filter = argv[1];
    call = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    allocate(NULL);
    do_round(); /* what the C library does once */
    if (strcmp(filter, "all") == 0) {
        deny(~0U, SECCOMP_RET_ALLOW);
    } else if (strcmp(filter, "needed") == 0) {
        allow_needed();
    } else if (strcmp(filter, "kill") == 0) {
        deny(call, SECCOMP_RET_KILL_PROCESS);
    } else if (strcmp(filter, "errno") == 0) {
        deny(call, SECCOMP_RET_ERRNO | (call == SYS_clone3 ? ENOSYS : EACCES));
    } else if (strcmp(filter, "trap") == 0) {
        deny(call, SECCOMP_RET_TRAP);
    } else if (strcmp(filter, "many") == 0) {
        allow_many();
    } else if (pipe(pipes) == 0 && strcmp(filter, "late") != 0) {
        pthread_create(&thread, NULL, wait_filtered, pipes);
        if (strcmp(filter, "first") == 0) {
            deny(call, SECCOMP_RET_KILL_PROCESS);
        }
    }
    if (strcmp(filter, "strict") != 0 && strcmp(filter, "thread") != 0) {
        write(1, "ready\n", 6);
    }
    while (read(0, &byte, 1) == 1) {
        if (strcmp(filter, "late") == 0) {
            deny(call, SECCOMP_RET_KILL_PROCESS);
        }
        do_round();
        write(1, "done\n", 5);
    }
    _exit(3);
}
