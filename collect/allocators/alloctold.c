/* SPDX-License-Identifier: MIT */
/* alloctold.c: see alloctold.h. */
#define _GNU_SOURCE
#include "collect/allocators/alloctold.h"

#include "analyze/base/fullwrite.h"
#include "analyze/base/scope.h"
#include "analyze/read/region.h"
#include "memtrace/format.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { LARGEST = 1 << 20 /* what is said beyond is not kept */ };

static void alloctold_path(char *path, size_t capacity, const char *folder, int length,
                           uint64_t run) {
    snprintf(path, capacity, "%.*s/%" PRIx64 ".told", length, folder, run);
}

/* The run that somebody collects; 0: none. */
static uint64_t alloctold_run(const char *region) {
    struct memtrace_header header;
    SCOPE_FD int fd = open(region, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 && pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
                   header.collector_pid != 0
               ? header.run.id
               : 0;
}

/* Whether it is a line of the text. */
static bool has_line(const char *text, const char *line, size_t length) {
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        if (size == length && memcmp(text, line, length) == 0) {
            return true;
        }
        text += size + (text[size] == '\n');
    }
    return false;
}

static bool alloctold_add(int fd, const char *line) {
    /* "SPECIFICATION": no function is called ... in PROGRAM: up to what differs. */
    const char *absent = line[0] == '"' ? strstr(line, "\": no ") : NULL;
    size_t length = absent != NULL ? (size_t)(absent - line) + 1 : strlen(line);
    SCOPE_MEMORY char *text = malloc(LARGEST + 1);
    ssize_t size = text != NULL && flock(fd, LOCK_EX) == 0 ? pread(fd, text, LARGEST, 0) : -1;
    if (size < 0) {
        return true;
    }
    text[size] = '\0';
    if (has_line(text, line, length)) {
        return false;
    }
    if (lseek(fd, 0, SEEK_END) < LARGEST) {
        fullwrite(fd, line, length);
        fullwrite(fd, "\n", 1);
    }
    return true;
}

bool alloctold_is_news(const char *region, const char *line) {
    uint64_t run = alloctold_run(region);
    const char *name = strrchr(region, '/');
    char path[512];
    if (run == 0 || name == NULL) {
        return true;
    }
    alloctold_path(path, sizeof path, region, (int)(name - region), run);
    SCOPE_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 || alloctold_add(fd, line);
}

void alloctold_forget(uint64_t run) {
    struct region_folders folders;
    size_t count = region_folders(geteuid(), &folders);
    char path[512];
    for (size_t i = 0; i < count; i++) {
        alloctold_path(path, sizeof path, folders.path[i], (int)strlen(folders.path[i]), run);
        unlink(path);
    }
}
