/* SPDX-License-Identifier: MIT */
/* trust.c: see trust.h. */
#include "analyze/read/trust.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_bool is_foreign; /* some data are */
static char *debug_folders;    /* separated by colons; NULL: none were named */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of debug_folders: a server opens several
                                                            files at once */

/* Root, or who became root to ask. */
static bool is_asker(uid_t owner) {
    const char *user = getenv("SUDO_UID");
    char *end;
    unsigned long number;
    if (owner == 0 || user == NULL || *user == '\0') {
        return owner == 0;
    }
    number = strtoul(user, &end, 10);
    return *end == '\0' && number == owner;
}

void trust_note_data(int fd) {
    struct stat status;
    if (geteuid() == 0 && fstat(fd, &status) == 0 && !is_asker(status.st_uid)) {
        atomic_store(&is_foreign, true);
    }
}

void trust_folders(const char *folders) {
    char *copy = folders != NULL ? strdup(folders) : NULL;
    if (copy != NULL) {
        pthread_mutex_lock(&lock);
        free(debug_folders);
        debug_folders = copy;
        pthread_mutex_unlock(&lock);
    }
}

static bool trust_is_below(const char *path, const char *folder, size_t length) {
    while (length > 1 && folder[length - 1] == '/') {
        length--;
    }
    return length != 0 && strncmp(path, folder, length) == 0 &&
           (path[length] == '/' || folder[length - 1] == '/');
}

/* A path that climbs out of the folder again is not in it. Under the lock. */
static bool is_in_named_folder(const char *path) {
    const char *at = debug_folders;
    if (at == NULL || strstr(path, "/../") != NULL) {
        return false;
    }
    for (;;) {
        size_t length = strcspn(at, ":");
        if (trust_is_below(path, at, length)) {
            return true;
        }
        if (at[length] == '\0') {
            return false;
        }
        at += length + 1;
    }
}

bool trust_allows(int fd, const char *path) {
    struct stat status;
    bool is_named;
    if (!atomic_load(&is_foreign)) {
        return true;
    }
    pthread_mutex_lock(&lock);
    is_named = is_in_named_folder(path);
    pthread_mutex_unlock(&lock);
    return is_named || (fstat(fd, &status) == 0 && is_asker(status.st_uid));
}
