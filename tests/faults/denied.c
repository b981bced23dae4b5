/* SPDX-License-Identifier: MIT */
/*
 * denied.c NUMBER HOW: a program that from some moment on may not make one system call: it is
 * killed for it, gets a signal or an error (kill, trap, refuse). It allocates along new paths, in a
 * new thread and in a forked child that does much; maps memory, and starts a shell. What came of
 * each is said on stdout. 77: no filter can be had.
 */
#include "../programs/subjects/subject.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDS_EVENTS = 260000, MAPPED = 1 << 20 };

static int lock_in(unsigned number, unsigned refusal) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, refusal),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

NOINLINE static void go_down(int depth) {
    if (depth > 0) {
        go_down(depth - 1);
    } else {
        void *block = malloc(300);
        keep(block);
        free(block);
    }
    keep(&depth);
}

static void *in_thread(void *argument) {
    for (int depth = 0; depth < 100; depth++) {
        go_down(depth);
    }
    return argument;
}

static void in_child(void) {
    for (int i = 0; i < CHILDS_EVENTS / 2; i++) {
        void *block = malloc((size_t)i % 500);
        keep(block);
        free(block);
    }
    _exit(3);
}

static void tell(const char *what, long result) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s: %ld\n", what, result);
    if (write(STDOUT_FILENO, line, (size_t)length) != length) {
        _exit(4);
    }
}

int main(int argc, char **argv) {
    unsigned number = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
    const char *how = argc > 2 ? argv[2] : "";
    unsigned refusal = strcmp(how, "kill") == 0   ? SECCOMP_RET_KILL_PROCESS
                       : strcmp(how, "trap") == 0 ? SECCOMP_RET_TRAP
                                                  : SECCOMP_RET_ERRNO | EPERM;
    pthread_t thread;
    pid_t child;
    void *mapped;
    int status = -1;
    keep(malloc(100));
    if (lock_in(number, refusal) != 0) {
        return 77;
    }
    for (size_t size = 1; size < 1000; size++) {
        keep(malloc(size));
    }
    in_thread(NULL);
    tell("paths", 0);
    child = fork();
    if (child == 0) {
        in_child();
    }
    tell("waits", child > 0 && waitpid(child, &status, 0) == child);
    tell("child", status);
    mapped = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tell("mapped", mapped != MAP_FAILED && munmap(mapped, MAPPED) == 0);
    tell("system", system("exit 5"));
    status = pthread_create(&thread, NULL, in_thread, NULL);
    tell("thread", status != 0 ? status : pthread_join(thread, NULL));
    return 3;
}
