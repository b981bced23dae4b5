/* SPDX-License-Identifier: MIT */
/*
 * descriptors.c: which descriptors are open, as the program sees them at several moments of its
 * life. `descriptors wait` says "ready" first and waits for a byte, so that somebody may attach.
 */
#define _GNU_SOURCE
#include "subject.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

static void tell(const char *moment) {
    char line[512];
    size_t length = (size_t)snprintf(line, sizeof line, "%s:", moment);
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder)) {
            length += (size_t)snprintf(line + length, sizeof line - length, " %s", entry->d_name);
        }
    }
    closedir(folder);
    snprintf(line + length, sizeof line - length, "\n");
    say(line);
}

__attribute__((constructor)) static void first(void) {
    keep(malloc(10));
    tell("constructor");
}

/* Call paths, as many as there are ways through the calls: the region grows. */
static NOINLINE void branch(int levels) {
    if (levels == 0) {
        keep(malloc(20));
    } else {
        branch(levels - 1);
        keep(&levels);
        branch(levels - 1);
        keep(&levels);
    }
}

static void *in_thread(void *unused) {
    branch(4);
    tell("thread");
    return unused;
}

static void have_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
}

static void in_child(void) {
    tell("child");
    branch(6);
    tell("child that did something");
    have_thread(); /* now it has a region of its own */
    tell("child with a thread");
    branch(11);
    tell("child that grew");
}

static void with_child(void) {
    if (fork() == 0) {
        in_child();
        exit(0);
    }
    wait(NULL);
    tell("parent");
}

static void become_another(void) {
    uid_t before = geteuid();
    if (seteuid(65534) == 0) {
        branch(11); /* the region grows all the same */
        check(seteuid(before) == 0, "seteuid");
    }
    tell("another user for a while");
}

static void last(void) {
    tell("exit");
}

int main(int count, char **arguments) {
    char *again[] = {arguments[0], "again", NULL};
    int is_again = count > 1 && strcmp(arguments[1], "again") == 0;
    char byte;
    atexit(last);
    if (count > 1 && !is_again) {
        say("ready\n");
        check(read(0, &byte, 1) == 1, "a byte");
    }
    tell("main");
    branch(11);
    tell("main, grown");
    have_thread();
    become_another();
    with_child();
    if (!is_again) {
        execv("/nowhere", again);
        tell("after an exec that failed");
        execv(arguments[0], again);
    }
    return 3;
}
