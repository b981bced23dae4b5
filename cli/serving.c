/* SPDX-License-Identifier: MIT */
/* serving.c: see serving.h. */
#include "cli/serving.h"

#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Not in our process group: Ctrl-C while the program runs is for the program. stdout is the
 * program's, so the address goes to stderr. */
static int spawn(pid_t *server, char **argv) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int result;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    result = posix_spawn(server, "/proc/self/exe", &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return result;
}

pid_t serving_start(pid_t program) {
    char number[24];
    pid_t server;
    int reason;
    snprintf(number, sizeof number, "%ld", (long)program);
    reason = spawn(&server, (char *[]){"memtrace", "serve", number, NULL});
    if (reason != 0) {
        cli_error("cannot start the server of the page: %s", strerror(reason));
        return -1;
    }
    return server;
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
