/* SPDX-License-Identifier: MIT */
/* apart.c: processes of ours that the program does not see. See sys.h. */
#define _GNU_SOURCE
#include "runtime/base/call.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void by_default(int signal) {
    struct { /* their order differs from machine to machine: all of them are 0 */
        void *handler;
        unsigned long flags;
        void *restorer;
        struct sys_signals mask;
    } action = {0};
    CALL4(SYS_rt_sigaction, signal, &action, 0, SIGNALS_SIZE);
}

/* In the grandchild: everything but stderr goes, and the program takes over. */
static void become(const char *path, char *const argv[], char *const environment[]) {
    const struct sys_signals none = {{0}};
    long null = sys_open("/dev/null", O_RDWR, 0);
    CALL0(SYS_setsid);
    CALL3(SYS_dup3, null, 0, 0);
    CALL3(SYS_dup3, null, 1, 0);
    if (!log_has_stderr()) {
        CALL3(SYS_dup3, null, 2, 0);
    }
    if (CALL3(SYS_close_range, 3, ~0U, 0) < 0) {
        for (int fd = 3; fd < 1024; fd++) {
            sys_close(fd);
        }
    }
    for (int signal = 1; signal < NSIG; signal++) {
        by_default(signal);
    }
    CALL4(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, SIGNALS_SIZE);
    CALL3(SYS_execve, path, argv, environment);
}

/* A plain fork (no CLONE_VM): the child works on copies. Exit signal 0: the program's SIGCHLD and
 * wait() never see it; __WALL would. An emulator of user space may know only forks with SIGCHLD
 * (qemu does): then *signal is that. */
static long fork_unseen(int *signal) {
    long child = call_kernel(SYS_clone, 0, 0, 0, 0, 0, 0);
    *signal = child == -EINVAL ? SIGCHLD : 0;
    return *signal != 0 ? call_kernel(SYS_clone, *signal, 0, 0, 0, 0, 0) : child;
}

/* Waits for it; all signals are blocked. The signal of its end is taken, unless another of that
 * kind was there before: then the program cannot tell one from two. How it ended, as wait tells. */
static int reap(long child, int signal, struct sys_signals pending) {
    uint64_t bit = signal != 0 ? UINT64_C(1) << (signal - 1) : 0;
    const struct sys_signals ours = {{bit & ~pending.word[0]}};
    const struct timespec at_once = {0};
    int status = -1;
    while (CALL4(SYS_wait4, child, &status, __WALL, 0) == -EINTR) {
    }
    if (ours.word[0] != 0) {
        CALL4(SYS_rt_sigtimedwait, &ours, 0, &at_once, SIGNALS_SIZE);
    }
    return status;
}

/* The exit status of a child that is waited for; 127: there is none, or it did not end by itself.
 */
static int exit_status(long child) {
    int status = -1;
    while (child > 0 && CALL4(SYS_wait4, child, &status, __WALL, 0) == -EINTR) {
    }
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

/* By a grandchild: exec gives a process the exit signal SIGCHLD (the kernel's fs/exec.c,
 * de_thread()), so its parent must not be the program. How the child in between ended, as wait
 * tells; with the grandchild's status, if it waits for that. Or a negative errno: no fork. */
static long run_apart(const char *path, char *const argv[], char *const environment[], int waits) {
    struct sys_signals mask = sys_block_signals();
    struct sys_signals pending = {{0}};
    int signal;
    CALL2(SYS_rt_sigpending, &pending, SIGNALS_SIZE);
    long child = fork_unseen(&signal);
    if (child == 0) {
        long grandchild;
        by_default(SIGCHLD); /* where it is ignored nothing is left to wait for */
        grandchild = fork_unseen(&signal);
        if (grandchild == 0) {
            become(path, argv, environment);
            CALL1(SYS_exit_group, 127);
        }
        CALL1(SYS_exit_group, waits ? exit_status(grandchild) : 0);
    }
    if (child > 0) {
        child = reap(child, signal, pending);
    }
    sys_restore_signals(mask);
    return child;
}

int sys_run(const char *path, char *const argv[], char *const environment[]) {
    long status = run_apart(path, argv, environment, 1);
    return status >= 0 && WIFEXITED((int)status) ? WEXITSTATUS((int)status) : -1;
}

long sys_spawn_detached(const char *path, char *const argv[], char *const environment[]) {
    long status = run_apart(path, argv, environment, 0);
    return status < 0 ? status : 0;
}

/* --- a copy ----------------------------------------------------------------------------------- */

static void idle(const char *name, uint64_t seconds) {
    const struct timespec time = {.tv_sec = (time_t)seconds};
    CALL2(SYS_prctl, PR_SET_NAME, name);
    CALL3(SYS_close_range, 0, ~0U, 0);
    CALL2(SYS_nanosleep, &time, 0);
    CALL1(SYS_exit_group, 0);
}

long sys_copy_process(const char *name, uint64_t seconds) {
    struct sys_signals mask = sys_block_signals();
    int signal;
    long child = fork_unseen(&signal);
    if (child == 0) {
        idle(name, seconds);
    }
    sys_restore_signals(mask);
    while (child > 0 && CALL4(SYS_wait4, child, 0, __WALL, 0) == -EINTR) {
    }
    return child < 0 ? child : 0;
}
