/* SPDX-License-Identifier: MIT */
/*
 * cycled.c MODE: says "ready", and until there is a line to read does nothing but
 *
 *   malloc N        allocate and free in N threads
 *   alone           allocate and free in its one thread, which never sleeps
 *   dlopens FILE    open and close this library, in two threads
 *   forks           fork children that allocate and end
 *   asleep CALL     sleep in this system call, for a short time again and again
 *
 * Then says "end". Of cycles.py; with PLUGIN it is the library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef PLUGIN
void *plugin_take(void) {
    return strdup("what a plug-in allocates");
}
#else

enum { MOST = 64, SHORT_MS = 20 };

static volatile int stop;
static int ends[2];

static void *allocate(void *unused) {
    while (!stop) {
        void *block = malloc(64);
        *(volatile char *)block = 1;
        free(block);
    }
    return unused;
}

static void *open_library(void *file) {
    while (!stop) {
        void *library = dlopen(file, RTLD_NOW);
        void *(*take)(void);
        if (library == NULL) {
            exit(4);
        }
        take = (void *(*)(void))dlsym(library, "plugin_take");
        free(take());
        dlclose(library);
    }
    return NULL;
}

static void *fork_children(void *unused) {
    while (!stop) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            free(malloc(100));
            _exit(7);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
            WEXITSTATUS(status) != 7) {
            exit(5);
        }
    }
    return unused;
}

static void *nap(void *unused) {
    usleep(SHORT_MS * 1000);
    return unused;
}

/* What a call must return, or the program ends with 6. */
static void want(long got, long wanted) {
    if (got != wanted) {
        exit(6);
    }
}

static void sleep_once(const char *name) {
    const struct timespec time = {0, SHORT_MS * 1000000L};
    struct timeval value = {0, SHORT_MS * 1000L};
    struct pollfd none = {-1, 0, 0};
    struct epoll_event event;
    pthread_t thread;
    char byte;
    if (strcmp(name, "nanosleep") == 0) {
        want(nanosleep(&time, NULL), 0);
    } else if (strcmp(name, "poll") == 0) {
        want(poll(&none, 1, SHORT_MS), 0);
    } else if (strcmp(name, "select") == 0) {
        want(select(0, NULL, NULL, NULL, &value), 0);
    } else if (strcmp(name, "epoll") == 0) {
        want(epoll_wait(ends[0], &event, 1, SHORT_MS), 0);
    } else if (strcmp(name, "read") == 0) {
        want(read(ends[0], &byte, 1), 1);
    } else if (strcmp(name, "recv") == 0) {
        want(recv(ends[0], &byte, 1, 0), 1);
    } else {
        want(pthread_create(&thread, NULL, nap, NULL), 0);
        want(pthread_join(thread, NULL), 0);
    }
}

static void *sleep_in(void *name) {
    while (!stop) {
        sleep_once(name);
    }
    return NULL;
}

/* For those who read. */
static void *write_bytes(void *unused) {
    while (!stop) {
        usleep(SHORT_MS * 1000);
        want(write(ends[1], "x", 1), 1);
    }
    want(write(ends[1], "x", 1), 1);
    return unused;
}

static int has_line(void) {
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    return poll(&in, 1, 0) != 0;
}

static void allocate_alone(void) {
    do {
        for (int i = 0; i < 1000000; i++) {
            void *block = malloc(64);
            *(volatile char *)block = 1;
            free(block);
        }
    } while (!has_line());
}

static int start(pthread_t *threads, int argc, char **argv) {
    int number = argc > 2 && strcmp(argv[1], "malloc") == 0 ? atoi(argv[2])
                 : strcmp(argv[1], "dlopens") == 0          ? 2
                                                            : 1;
    void *(*work)(void *) = strcmp(argv[1], "malloc") == 0    ? allocate
                            : strcmp(argv[1], "dlopens") == 0 ? open_library
                            : strcmp(argv[1], "forks") == 0   ? fork_children
                                                              : sleep_in;
    for (int i = 0; i < number && i < MOST; i++) {
        want(pthread_create(&threads[i], NULL, work, argc > 2 ? argv[2] : NULL), 0);
    }
    return number;
}

int main(int argc, char **argv) {
    pthread_t threads[MOST];
    pthread_t writer;
    char line[16];
    int is_read = argc > 2 && (strcmp(argv[2], "read") == 0 || strcmp(argv[2], "recv") == 0);
    int number;
    if (argc > 2 && strcmp(argv[2], "epoll") == 0) {
        ends[0] = epoll_create1(0);
    } else {
        want(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    }
    number = strcmp(argv[1], "alone") != 0 ? start(threads, argc, argv) : 0;
    if (is_read) {
        want(pthread_create(&writer, NULL, write_bytes, NULL), 0);
    }
    puts("ready");
    fflush(stdout);
    if (number == 0) {
        allocate_alone();
    }
    want(fgets(line, sizeof line, stdin) != NULL, 1);
    stop = 1;
    for (int i = 0; i < number; i++) {
        pthread_join(threads[i], NULL);
    }
    puts("end");
    return 3;
}
#endif
