/* SPDX-License-Identifier: MIT */
/* child.c: starting, signalling and imitating the program under us. See child.h. */
#include "cli/child.h"

#include "cli/cli.h"
#include "collect/programask.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* As every shell and execvp do. */
static void execute_by_shell(const char *path, char **argv) {
    char name[] = "sh";
    size_t words = 0;
    char **shell;
    while (argv[words] != NULL) {
        words++;
    }
    shell = calloc(words + 2, sizeof *shell);
    if (shell != NULL) {
        shell[0] = name;
        shell[1] = (char *)(uintptr_t)path;
        memcpy(shell + 2, argv + 1, words * sizeof *shell);
        execv("/bin/sh", shell);
        free((void *)shell);
    }
}

/* Another machine's program is no script. */
static bool is_elf(const char *path) {
    char start[SELFMAG] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is = fd >= 0 && read(fd, start, SELFMAG) == SELFMAG && memcmp(start, ELFMAG, SELFMAG) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is;
}

int execute_program(const char *path, char **argv) {
    int reason;
    execv(path, argv);
    reason = errno;
    if (reason == ENOEXEC && !is_elf(path)) {
        execute_by_shell(path, argv);
    }
    return reason;
}

int execute_status(int reason) {
    return reason == ENOENT || reason == ENOTDIR ? 127 : 126;
}

static const int handled[] = {SIGCHLD,   SIGINT,  SIGQUIT, SIGTERM, SIGHUP,  SIGUSR1,  SIGUSR2,
                              SIGALRM,   SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGURG,
                              SIGVTALRM, SIGPROF, SIGIO,   SIGPWR,  SIGXCPU, SIGSTKFLT};

/* In the child: everything as it was before us. */
static void restore(const struct child *child) {
    sigaction(SIGCHLD, &child->old_child, NULL);
    sigaction(SIGPIPE, &child->old_pipe, NULL);
    sigaction(SIGXFSZ, &child->old_size, NULL);
    sigprocmask(SIG_SETMASK, &child->mask, NULL);
}

void child_put_quoted(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        fputs(*text == '%' ? "%" : "", out);
        fputc(*text, out);
    }
}

/* What the runtime gets is a pattern once more. */
static int child_set_path(const char *name, const char *path) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int result = -1;
    if (out != NULL) {
        child_put_quoted(out, path);
        result = fclose(out) == 0 ? setenv(name, text, 1) : -1;
    }
    free(text);
    return result;
}

void child_expand(const struct child_variable *variable, pid_t pid, char path[PATH_MAX]) {
    recordask_expand(variable->value, pid, variable->program, 0, variable->time, path, PATH_MAX);
}

static void run_child(const struct child *child, const char *path, char **argv,
                      const struct child_variable *variables, size_t count, int report) {
    int reason = 0;
    for (size_t i = 0; i < count; i++) {
        const struct child_variable *variable = &variables[i];
        char expanded[PATH_MAX];
        if (variable->program != NULL) {
            child_expand(variable, getpid(), expanded);
        }
        if ((variable->program != NULL ? child_set_path(variable->name, expanded)
                                       : setenv(variable->name, variable->value, 1)) != 0) {
            reason = ENOMEM;
        }
    }
    restore(child);
    if (reason == 0) {
        reason = execute_program(path, argv);
    }
    if (write(report, &reason, sizeof reason) < 0) {
        _exit(127);
    }
    _exit(127);
}

static int fork_child(struct child *child, const char *path, char **argv,
                      const struct child_variable *variables, size_t count) {
    int pipes[2];
    int reason;
    if (pipe2(pipes, O_CLOEXEC) != 0) {
        return errno;
    }
    child->pid = fork();
    if (child->pid == 0) {
        run_child(child, path, argv, variables, count, pipes[1]);
    }
    reason = child->pid < 0 ? errno : 0;
    close(pipes[1]);
    if (child->pid > 0) { /* waits until it has become the program */
        ssize_t size;
        do {
            size = read(pipes[0], &reason, sizeof reason);
        } while (size < 0 && errno == EINTR);
        reason = size == sizeof reason ? reason : 0;
        if (reason != 0) {
            waitpid(child->pid, NULL, 0);
        }
    }
    close(pipes[0]);
    return reason;
}

int child_start(struct child *child, const char *path, char **argv,
                const struct child_variable *variables, size_t count) {
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;
    int reason;
    *child = (struct child){.pid = -1, .signals = -1};
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++) {
        sigaddset(&set, handled[i]);
    }
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        sigaddset(&set, number);
    }
    sigprocmask(SIG_BLOCK, &set, &child->mask);
    /* SIGCHLD ignored would reap the child behind our back; a full or closed output must not end
     * us. */
    sigaction(SIGCHLD, &normal, &child->old_child);
    sigaction(SIGPIPE, &ignore, &child->old_pipe);
    sigaction(SIGXFSZ, &ignore, &child->old_size);
    child->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    reason = child->signals < 0 ? errno : fork_child(child, path, argv, variables, count);
    if (reason == 0) {
        return 0;
    }
    restore(child);
    errno = reason;
    if (child->pid < 0) {
        return 1;
    }
    return execute_status(reason);
}

static void look_at_child(struct child *child) {
    siginfo_t info = {0};
    while (waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
           info.si_pid != 0) {
        if (info.si_code == CLD_STOPPED && child->stop_wanted) {
            /* As a shell sees a stopped job: we stop, too, and go on together. */
            child->stop_wanted = false;
            raise(SIGSTOP);
            kill(child->pid, SIGCONT);
        }
        info.si_pid = 0;
    }
    info.si_pid = 0;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
        info.si_pid != 0) {
        child->ended = true;
    }
}

static void child_pass_on(struct child *child, const struct signalfd_siginfo *info) {
    int number = (int)info->ssi_signo;
    bool from_terminal = info->ssi_code == SI_KERNEL || (pid_t)info->ssi_pid == child->pid;
    bool stops = number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
    if (number == SIGCHLD) {
        return; /* look_at_child comes anyway */
    }
    child->asked_to_end |= number == SIGTERM || number == SIGHUP;
    if (from_terminal) { /* the child has had it */
        child->stop_wanted |= stops;
    } else if (!child->ended && info->ssi_code == SI_QUEUE) {
        sigqueue(child->pid, number, (union sigval){.sival_ptr = (void *)(uintptr_t)info->ssi_ptr});
    } else if (!child->ended) {
        kill(child->pid, number);
    }
}

void child_handle_signals(struct child *child) {
    struct signalfd_siginfo info;
    while (read(child->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        child_pass_on(child, &info);
    }
    look_at_child(child);
}

void child_reap(struct child *child) {
    while (waitpid(child->pid, &child->status, 0) < 0 && errno == EINTR) {
    }
}

int child_imitate(const struct child *child) {
    if (WIFSIGNALED(child->status)) {
        int number = WTERMSIG(child->status);
        struct sigaction normal = {.sa_handler = SIG_DFL};
        sigset_t set;
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        prctl(PR_SET_DUMPABLE, 0);
        sigaction(number, &normal, NULL);
        sigemptyset(&set);
        sigaddset(&set, number);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        kill(getpid(), number);
        return 128 + number;
    }
    return WEXITSTATUS(child->status);
}

void child_become(char *const argv[], int output) {
    sigset_t none;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigemptyset(&none);
    if (setpgid(0, 0) == 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
        dup2(output >= 0 ? output : nothing, STDOUT_FILENO) >= 0 &&
        sigprocmask(SIG_SETMASK, &none, NULL) == 0) {
        execv("/proc/self/exe", argv);
    }
    _exit(CLI_FAILURE);
}
