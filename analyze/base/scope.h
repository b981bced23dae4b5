/* SPDX-License-Identifier: MIT */
/*
 * scope.h: what a function has taken goes when the function returns, by whichever way. errno stays.
 *
 *     SCOPE_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
 *     SCOPE_MEMORY char *text = malloc(SIZE);
 *     if (fd < 0 || text == NULL || read(fd, text, SIZE) < 0) {
 *         return error_set(error, "cannot read %s: %s", path, strerror(errno));
 *     }
 *
 * It goes with a value that says that there is none (-1, NULL, all zero), so that has to be there
 * before the first way out. What is to outlive the function is taken out: `return scope_keep(&fd)`.
 *
 * For `collect` and `stream`, whose functions return a status. What a job has taken goes with the
 * job (job.h), whose end passes over scopes: no function of a job is called while one has
 * something.
 */
#ifndef ANALYZE_BASE_SCOPE_H
#define ANALYZE_BASE_SCOPE_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* undo(&variable) is called. */
#define SCOPE(undo)  __attribute__((cleanup(undo), unused))
#define SCOPE_FD     SCOPE(scope_close)
#define SCOPE_FILE   SCOPE(scope_fclose)
#define SCOPE_FOLDER SCOPE(scope_closedir)
#define SCOPE_MEMORY SCOPE(scope_free)

/* Also for a descriptor of something larger that may have none. */
static inline void scope_close(const int *fd) {
    int reason = errno;
    if (*fd >= 0) {
        close(*fd);
    }
    errno = reason;
}

static inline void scope_fclose(FILE *const *file) {
    int reason = errno;
    if (*file != NULL) {
        fclose(*file);
    }
    errno = reason;
}

static inline void scope_closedir(DIR *const *folder) {
    int reason = errno;
    if (*folder != NULL) {
        closedir(*folder);
    }
    errno = reason;
}

/* Of a pointer of any type. */
static inline void scope_free(const void *pointer) {
    int reason = errno;
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    free(memory);
    errno = reason;
}

/* The descriptor stays open. */
static inline int scope_keep(int *fd) {
    int kept = *fd;
    *fd = -1;
    return kept;
}

#endif
