/* SPDX-License-Identifier: MIT */
/* subject.c: a program for the tests of this folder: allocates, then does what its arguments say,
 * in order. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memtrace/memtrace.h>

static void on_signal(int number) {
    char line[] = "signal 00\n";
    line[7] = (char)('0' + number / 10);
    line[8] = (char)('0' + number % 10);
    if (write(1, line, sizeof line - 1) < 0) {
        _exit(1);
    }
}

static __attribute__((noinline)) void *keep(size_t size) {
    void *block = malloc(size);
    memset(block, 1, size);
    return block;
}

/* 200,000 bytes of churn a millisecond at most. */
static void churn(int rounds) {
    for (int i = 0; i < rounds; i++) {
        void *volatile block = malloc(100000);
        free(block);
        usleep(1000);
    }
}

/* The signal waits until the program does (pause), so that none comes too early. */
static void catch (int number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(number, on_signal);
}

static void wait_for_signal(void) {
    sigset_t none;
    sigemptyset(&none);
    sigsuspend(&none);
}

static void fork_and_die(void) {
    pid_t child = fork();
    if (child == 0) {
        keep(777);
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
}

static void say_environment(void) {
    extern char **environ;
    for (char **variable = environ; *variable != NULL; variable++) {
        if (strncmp(*variable, "MEMTRACE", 8) == 0 || strncmp(*variable, "LD_PRELOAD", 10) == 0) {
            puts(*variable);
        }
    }
    puts("end");
    fflush(stdout);
}

/* Until its input ends. */
static void *rest_of_threads(void *unused) {
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    keep(4000);
    return unused;
}

static void leave_main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, rest_of_threads, NULL);
    puts("left");
    fflush(stdout);
    pthread_exit(NULL);
}

int main(int argc, char **argv) {
    void *volatile kept = keep(12345);
    for (int i = 1; i < argc; i++) {
        int value = atoi(argv[i] + strcspn(argv[i], "0123456789"));
        if (strncmp(argv[i], "exit", 4) == 0) {
            return value;
        } else if (strncmp(argv[i], "raise", 5) == 0) {
            raise(value);
        } else if (strncmp(argv[i], "catch", 5) == 0) {
            catch (value);
        } else if (strncmp(argv[i], "churn", 5) == 0) {
            churn(value);
        } else if (strncmp(argv[i], "sleep", 5) == 0) {
            usleep((useconds_t)value * 1000);
        } else if (strcmp(argv[i], "ready") == 0) {
            puts("ready");
            fflush(stdout);
        } else if (strcmp(argv[i], "pause") == 0) {
            wait_for_signal();
        } else if (strcmp(argv[i], "snapshot") == 0) {
            memtrace_snapshot ? memtrace_snapshot() : (void)0;
        } else if (strcmp(argv[i], "fork") == 0) {
            fork_and_die();
        } else if (strcmp(argv[i], "environment") == 0) {
            say_environment();
        } else if (strcmp(argv[i], "leave") == 0) {
            leave_main();
        } else if (strcmp(argv[i], "exec") == 0) {
            execv(argv[i + 1], argv + i + 1);
        }
    }
    (void)kept;
    return 0;
}
