/* SPDX-License-Identifier: MIT */
/* procfile.c: see procfile.h. */
#include "analyze/read/procfile.h"

#include "analyze/base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Files ---- */

enum { PATH_BYTES = 256 };

int procfile_open(int flags, const char *format, ...) {
    char path[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    return open(path, flags | O_CLOEXEC);
}

FILE *procfile_text(const char *format, ...) {
    char path[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    return fopen(path, "re");
}

DIR *procfile_folder(const char *format, ...) {
    char path[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    return opendir(path);
}

const char *procfile_read(char *text, size_t capacity, const char *format, ...) {
    char path[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    SCOPE_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, capacity - 1) : -1;
    text[size > 0 ? size : 0] = '\0';
    return text;
}

pid_t procfile_next(DIR *folder) {
    const struct dirent *entry;
    pid_t number = 0;
    while (number <= 0 && folder != NULL && (entry = readdir(folder)) != NULL) {
        number = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    return number > 0 ? number : 0;
}

/* ---- Mappings ---- */

int procmaps_open(struct procmaps *maps, pid_t pid) {
    *maps = (struct procmaps){.file = procfile_text("/proc/%ld/maps", (long)pid)};
    return maps->file != NULL ? 0 : -1;
}

/* "start-end rwxp offset device inode   path" */
int procmaps_next(struct procmaps *maps, struct procmapping *mapping) {
    char mode[5];
    int path = 0;
    if (getline(&maps->line, &maps->size, maps->file) <= 0) {
        return 0;
    }
    maps->line[strcspn(maps->line, "\n")] = '\0';
    if (sscanf(maps->line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %n",
               &mapping->start, &mapping->end, mode, &mapping->offset, &mapping->inode,
               &path) < 5 ||
        mapping->end <= mapping->start) {
        return -1;
    }
    mapping->readable = mode[0] == 'r';
    mapping->writable = mode[1] == 'w';
    mapping->executable = mode[2] == 'x';
    mapping->path = maps->line + (path != 0 ? (size_t)path : strlen(maps->line));
    return 1;
}

void procmaps_close(struct procmaps *maps) {
    if (maps->file != NULL) {
        fclose(maps->file);
    }
    free(maps->line);
    *maps = (struct procmaps){0};
}

/* ---- Numbers and words ---- */

/* Of the process or of one of its threads. */
static const char *procfile_of(char path[PATH_BYTES], pid_t pid, pid_t tid, const char *name) {
    if (tid == 0) {
        snprintf(path, PATH_BYTES, "/proc/%ld/%s", (long)pid, name);
    } else {
        snprintf(path, PATH_BYTES, "/proc/%ld/task/%ld/%s", (long)pid, (long)tid, name);
    }
    return path;
}

const char *procfile_stat(pid_t pid, pid_t tid, unsigned field, char text[PROCFILE_STAT_BYTES]) {
    char path[PATH_BYTES];
    const char *at = NULL;
    SCOPE_FD int fd = open(procfile_of(path, pid, tid, "stat"), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    ssize_t size = read(fd, text, PROCFILE_STAT_BYTES - 1);
    if (size > 0) {
        text[size] = '\0';
        at = strrchr(text, ')');
    }
    for (unsigned before = 2; at != NULL && before < field; before++) {
        at = strchr(at + 1, ' ');
    }
    errno = ESRCH;
    return at != NULL ? at + 1 : NULL;
}

int procfile_status(pid_t pid, pid_t tid, const char *name, char *value, size_t capacity) {
    char path[PATH_BYTES];
    char line[512];
    size_t length = strlen(name);
    SCOPE_FILE FILE *file = fopen(procfile_of(path, pid, tid, "status"), "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            const char *at = line + length + 1;
            line[strcspn(line, "\n")] = '\0';
            snprintf(value, capacity, "%s", at + strspn(at, " \t"));
            return 0;
        }
    }
    return -1;
}

/* Its numbers from our namespace to its own. */
uint32_t procfile_own_number(pid_t pid, pid_t tid) {
    char numbers[512];
    const char *last;
    if (procfile_status(pid, tid, "NSpid", numbers, sizeof numbers) != 0) {
        return 0;
    }
    last = strrchr(numbers, '\t');
    return (uint32_t)strtoul(last != NULL ? last : numbers, NULL, 10);
}
