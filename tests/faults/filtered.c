/* SPDX-License-Identifier: MIT */
/*
 * filtered.c: a program that locks itself in late in its life: a seccomp filter kills it at any
 * system call that is not on its list, or refuses it. Its heap goes on to grow, along new call
 * paths, too, and in a new thread; it ends with 3.
 */
#include "../programs/subjects/subject.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* What a careful program allows: what its own code, its allocator and its threads call; then what
 * the library calls as well (docs/run.md lists it). */
static const int allowed[] = {
    SYS_write,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_madvise,
    SYS_exit_group,
    SYS_futex,
    SYS_rt_sigreturn,
    SYS_mprotect,
    SYS_rt_sigaction,
    SYS_clone,
    SYS_clone3,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_exit,
    SYS_rt_sigprocmask,
    /* the library's */
    SYS_openat,
    SYS_close,
    SYS_read,
    SYS_pread64,
    SYS_fstat,
    SYS_newfstatat,
    SYS_fallocate,
    SYS_fcntl,
    SYS_prlimit64,
    SYS_renameat2,
    SYS_unlinkat,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_kill,
    SYS_rt_sigpending,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    SYS_sched_yield,
    SYS_nanosleep,
};
enum { PROGRAMS_OWN = 17 };

/* but: not this call of the list. by_prctl: else by the system call, for all threads. */
static int lock_in(int count, unsigned refusal, int but, int by_prctl) {
    enum { COUNT = sizeof allowed / sizeof *allowed };
    int size = 2 * count + 2;
    struct sock_filter filter[COUNT * 2 + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
    struct sock_fprog program = {(unsigned short)size, filter};
    for (int i = 0; i < count; i++) {
        filter[2 * i + 1] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        filter[2 * i + 2] = (struct sock_filter)BPF_STMT(
            BPF_RET | BPF_K, allowed[i] == but ? refusal : SECCOMP_RET_ALLOW);
    }
    filter[size - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, refusal);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    check(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT,
          "no filter");
    return by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
                    : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                                   &program);
}

NOINLINE static void use(size_t size, int count) {
    for (int i = 0; i < count; i++) {
        void *block = malloc(size);
        keep(block);
        free(block);
    }
}

NOINLINE static void go_down(int depth, size_t size) {
    if (depth > 0) {
        go_down(depth - 1, size);
    } else {
        use(size, 1);
    }
    keep(&depth);
}

/* Twice as many paths for each bit. */
NOINLINE static void branch(int bits, size_t size) {
    if (bits == 0) {
        use(size, 1);
    } else {
        branch(bits - 1, size);
        keep(&bits);
        branch(bits - 1, size);
    }
    keep(&size);
}

static void *in_thread(void *argument) {
    for (int depth = 0; depth < 500; depth++) {
        go_down(depth, 80003);
    }
    return argument;
}

int main(int argc, char **argv) {
    const char *action = argc > 1 ? argv[1] : "";
    int grows = strcmp(action, "grow") == 0; /* opens no more files, and takes many new paths */
    int count = strcmp(action, "allow") == 0 || grows ? (int)(sizeof allowed / sizeof *allowed)
                                                      : PROGRAMS_OWN;
    unsigned refusal = strcmp(action, "refuse") == 0 || grows ? SECCOMP_RET_ERRNO | EPERM
                                                              : SECCOMP_RET_KILL_PROCESS;
    /* A thread's free that gives memory back opens a file first. */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    use(80001, 10);
    if (lock_in(count, refusal, grows ? SYS_openat : -1, argc < 3) != 0) {
        return 77;
    }
    for (size_t size = 1; size < 3000; size++) {
        keep(malloc(size));
    }
    use(80001, 10);
    if (grows) {
        branch(16, 80005);
    }
    pthread_t thread;
    check(pthread_create(&thread, NULL, in_thread, NULL) == 0, "a thread");
    pthread_join(thread, NULL);
    say("all done\n");
    return 3;
}
