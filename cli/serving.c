/* SPDX-License-Identifier: MIT */
/* serving.c: see serving.h. */
#include "cli/serving.h"

#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the forked child. Not in our process group: Ctrl-C while the program runs is for the program.
 * stdout is the program's, so the address goes to stderr. It ends with its parent, however that
 * ends. */
_Noreturn static void become_server(pid_t parent, char *const argv[]) {
    sigset_t none;
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent && setpgid(0, 0) == 0 &&
        sigprocmask(SIG_SETMASK, &none, NULL) == 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
        dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) {
        execv("/proc/self/exe", argv);
    }
    _exit(CLI_FAILURE);
}

pid_t serving_start(pid_t program) {
    char number[24];
    pid_t parent = getpid();
    pid_t server;
    snprintf(number, sizeof number, "%ld", (long)program);
    server = fork();
    if (server == 0) {
        become_server(parent, (char *[]){"memtrace", "serve", number, NULL});
    }
    if (server < 0) {
        cli_error("cannot start the server of the page: %m");
    }
    return server;
}

void serving_end(pid_t server) {
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
}

void serving_wait(pid_t server) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    if (waitpid(server, NULL, WNOHANG) == server) {
        return;
    }
    fputs("memtrace: the page stays until Ctrl-C\n", stderr);
    for (;;) {
        int number = sigwaitinfo(&signals, NULL);
        if (number != SIGCHLD && number > 0) {
            kill(server, SIGTERM); /* a second time it ends at once */
        }
        if (waitpid(server, NULL, WNOHANG) == server) {
            return;
        }
    }
}
