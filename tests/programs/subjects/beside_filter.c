/* SPDX-License-Identifier: MIT */
/* beside_filter.c kill|refuse prctl|syscall|spawn: puts a filter on its system calls, which kills
 * for all but those of a small program, or refuses them, and becomes another program, or starts it.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const int allowed[] = {
    SYS_write,
    SYS_read,
    SYS_exit_group,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_futex,
    SYS_newfstatat,
    SYS_fstat,
    SYS_mprotect,
    SYS_madvise,
    SYS_execve,
    SYS_openat,
    SYS_close,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_prlimit64,
    SYS_getrandom,
    SYS_pread64,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_clone,
    SYS_clone3,
    SYS_wait4,
    SYS_rt_sigprocmask,
    SYS_rt_sigaction,
    SYS_ioctl,
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
    SYS_access,
#endif
};
enum { ALLOWED = sizeof allowed / sizeof allowed[0] };

static void install(const char *otherwise, const char *how) {
    struct sock_filter code[2 * ALLOWED + 2];
    struct sock_fprog program = {2 * ALLOWED + 2, code};
    code[0] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < ALLOWED; i++) {
        code[2 * i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        code[2 * i + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[2 * ALLOWED + 1] = (struct sock_filter)BPF_STMT(
        BPF_RET | BPF_K,
        strcmp(otherwise, "kill") == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | 1);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (strcmp(how, "syscall") == 0) {
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    } else {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    }
}

int main(int argc, char **argv) {
    char *again[] = {argv[0], NULL};
    pid_t child;
    int status = -1;
    for (int i = 0; i < 2000; i++) {
        free(malloc(i * 10));
    }
    if (argc == 1) {
        write(1, "started\n", 8);
        _exit(7);
    }
    install(argv[1], argv[2]);
    if (strcmp(argv[2], "spawn") == 0) {
        posix_spawn(&child, argv[0], NULL, NULL, again, environ);
        waitpid(child, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
    }
    execv(argv[0], again);
    _exit(98);
}
