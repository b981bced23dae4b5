/* SPDX-License-Identifier: MIT */
/* asleep.c CALL: sleeps once in this system call, and says what it returned and how long it took.
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

static void *sleep_on(void *unused) {
    usleep(MS * 1000);
    return unused;
}

static int after_a_while(void) {
    pid_t child = fork();
    if (child == 0) {
        usleep(MS * 1000);
        _exit(7);
    }
    return child;
}

static long call(const char *name) {
    struct timespec left = {0};
    const struct timespec time = {MS / 1000, MS % 1000 * 1000000};
    struct timeval value = {MS / 1000, MS % 1000 * 1000};
    struct pollfd none = {-1, 0, 0};
    char byte = 0;
    int ends[2];
    int status = 0;
    if (strcmp(name, "nanosleep") == 0) {
        return nanosleep(&time, &left);
    }
    if (strcmp(name, "poll") == 0) {
        return poll(&none, 1, MS);
    }
    if (strcmp(name, "select") == 0) {
        return select(0, NULL, NULL, NULL, &value);
    }
    if (strcmp(name, "epoll") == 0) {
        return epoll_wait(epoll_create1(0), &(struct epoll_event){0}, 1, MS);
    }
    if (strcmp(name, "wait") == 0) {
        after_a_while();
        wait(&status);
        return WEXITSTATUS(status);
    }
    if (strcmp(name, "read") == 0 || strcmp(name, "recv") == 0) {
        socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
        if (fork() == 0) {
            usleep(MS * 1000);
            _exit(write(ends[1], "x", 1) != 1);
        }
        return name[2] == 'a' ? read(ends[0], &byte, 1) : recv(ends[0], &byte, 1, 0);
    }
    if (strcmp(name, "join") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, sleep_on, NULL);
        return pthread_join(thread, NULL);
    }
    return -1;
}

int main(int argc, char **argv) {
    struct timespec from;
    struct timespec to;
    long result;
    puts("ready");
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &from);
    errno = 0;
    result = call(argv[argc - 1]);
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%ld %d %d\n", result, errno,
           (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 >= MS - 5);
    return 0;
}
