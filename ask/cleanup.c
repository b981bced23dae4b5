/* SPDX-License-Identifier: MIT */
/* cleanup.c: see cleanup.h. */
#include "ask/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WATCHED_MOST = 64, DEEPEST = 64 };

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING = sizeof ending / sizeof ending[0] };

static const char *volatile watched[WATCHED_MOST]; /* NULL: a free place */
static size_t watched_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those who add and take out */

/* ---- Removing, by system calls alone ---- */

static void remove_at(int folder, const char *name, unsigned depth);

/* Twice, since reading a folder while it changes may skip entries on some file systems. */
static void empty_folder(int folder, unsigned depth) {
    char entries[4096] __attribute__((aligned(8)));
    ssize_t size;
    for (int round = 0; round < 2; round++) {
        lseek(folder, 0, SEEK_SET);
        while ((size = getdents64(folder, entries, sizeof entries)) > 0) {
            const struct dirent64 *entry;
            for (ssize_t at = 0; at < size; at += entry->d_reclen) {
                entry = (const struct dirent64 *)(entries + at);
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
                    remove_at(folder, entry->d_name, depth + 1);
                }
            }
        }
    }
}

static void remove_at(int folder, const char *name, unsigned depth) {
    int inner;
    if (unlinkat(folder, name, 0) == 0 || (errno != EISDIR && errno != EPERM) || depth == DEEPEST) {
        return;
    }
    inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner >= 0) {
        empty_folder(inner, depth);
        close(inner);
        unlinkat(folder, name, AT_REMOVEDIR);
    }
}

void cleanup_remove(const char *path) {
    remove_at(AT_FDCWD, path, 0);
}

/* ---- Signals ---- */

void cleanup_remove_all(void) {
    for (size_t i = 0; i < WATCHED_MOST; i++) {
        const char *path = watched[i];
        if (path != NULL) {
            cleanup_remove(path);
        }
    }
}

static void clean_up(int signal) {
    cleanup_remove_all();
    raise(signal); /* the old action, as SA_RESETHAND brought it back, takes it on return */
}

static void handle_signals(void) {
    struct sigaction action = {.sa_handler = clean_up, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < ENDING; i++) {
        struct sigaction old;
        if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) {
            sigaction(ending[i], &action, NULL);
        }
    }
}

static void leave_signals(void) {
    const struct sigaction action = {.sa_handler = SIG_DFL};
    for (size_t i = 0; i < ENDING; i++) {
        struct sigaction old;
        if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler == clean_up) {
            sigaction(ending[i], &action, NULL);
        }
    }
}

/* ---- What is watched ---- */

void cleanup_watch(const char *path) {
    size_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < WATCHED_MOST && watched[i] != NULL) {
        i++;
    }
    if (i < WATCHED_MOST) {
        watched[i] = path;
        watched_count++;
        handle_signals();
    }
    pthread_mutex_unlock(&lock);
}

void cleanup_forget(const char *path) {
    size_t i = 0;
    pthread_mutex_lock(&lock);
    while (path != NULL && i < WATCHED_MOST && watched[i] != path) {
        i++;
    }
    if (path != NULL && i < WATCHED_MOST) {
        watched[i] = NULL;
        if (--watched_count == 0) {
            leave_signals();
        }
    }
    pthread_mutex_unlock(&lock);
}

char *cleanup_make_folder(char *pattern) {
    sigset_t all, old;
    char *made;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    made = mkdtemp(pattern);
    if (made != NULL) {
        cleanup_watch(made);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return made;
}
