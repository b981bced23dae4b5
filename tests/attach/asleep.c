/* SPDX-License-Identifier: MIT */
/*
 * asleep.c CALL: says "ready", sleeps once in this system call, says what it returned, and ends
 * when a byte comes. The sleep is over after a while (nanosleep, poll, select, epoll; it says then
 * whether that was too early), or when a byte comes (wait, read, recv, join).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1500 };

static void wait_for_byte(void) {
    char byte;
    if (read(STDIN_FILENO, &byte, 1) != 1) {
        _exit(4);
    }
}

static void *sleep_on(void *unused) {
    wait_for_byte();
    return unused;
}

/* Until a byte comes. 0: it is another call. */
static int sleep_until_told(const char *name, long *result) {
    char byte = 0;
    int ends[2];
    int status = 0;
    if (strcmp(name, "join") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, sleep_on, NULL);
        *result = pthread_join(thread, NULL);
        return 1;
    }
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    if (fork() == 0) {
        wait_for_byte();
        _exit(write(ends[1], "x", 1) == 1 ? 7 : 1);
    }
    if (strcmp(name, "wait") == 0) {
        *result = wait(&status) > 0 ? WEXITSTATUS(status) : -1;
    } else if (strcmp(name, "read") == 0) {
        *result = read(ends[0], &byte, 1);
    } else if (strcmp(name, "recv") == 0) {
        *result = recv(ends[0], &byte, 1, 0);
    } else {
        return 0;
    }
    return 1;
}

/* 0: it is another call. */
static int sleep_for_a_while(const char *name, long *result) {
    struct timespec left = {0};
    const struct timespec time = {MS / 1000, MS % 1000 * 1000000};
    struct timeval value = {MS / 1000, MS % 1000 * 1000};
    struct pollfd none = {-1, 0, 0};
    if (strcmp(name, "nanosleep") == 0) {
        *result = nanosleep(&time, &left);
    } else if (strcmp(name, "poll") == 0) {
        *result = poll(&none, 1, MS);
    } else if (strcmp(name, "select") == 0) {
        *result = select(0, NULL, NULL, NULL, &value);
    } else if (strcmp(name, "epoll") == 0) {
        *result = epoll_wait(epoll_create1(0), &(struct epoll_event){0}, 1, MS);
    } else {
        return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    const char *name = argv[argc - 1];
    struct timespec from;
    struct timespec to;
    long result = -1;
    int is_timed;
    puts("ready");
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &from);
    errno = 0;
    is_timed = sleep_for_a_while(name, &result);
    if (!is_timed && !sleep_until_told(name, &result)) {
        return 2;
    }
    int reason = errno;
    clock_gettime(CLOCK_MONOTONIC, &to);
    long ms = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
    printf("%ld %d %s\n", result, reason, is_timed && ms < MS - 5 ? "early" : "good");
    fflush(stdout);
    wait_for_byte();
    return 0;
}
