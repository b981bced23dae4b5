/* SPDX-License-Identifier: MIT */
/* procfile.c: see procfile.h. */
#include "analyze/read/procfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 80 };

static const char *procfile_path(char path[PATH_BYTES], pid_t pid, pid_t tid, const char *name) {
    if (tid == 0) {
        snprintf(path, PATH_BYTES, "/proc/%ld/%s", (long)pid, name);
    } else {
        snprintf(path, PATH_BYTES, "/proc/%ld/task/%ld/%s", (long)pid, (long)tid, name);
    }
    return path;
}

/* ---- Mappings ---- */

int procmaps_open(struct procmaps *maps, pid_t pid) {
    char path[PATH_BYTES];
    *maps = (struct procmaps){.file = fopen(procfile_path(path, pid, 0, "maps"), "re")};
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

const char *procfile_stat(pid_t pid, pid_t tid, unsigned field, char text[PROCFILE_STAT_BYTES]) {
    char path[PATH_BYTES];
    const char *at = NULL;
    ssize_t size;
    int fd = open(procfile_path(path, pid, tid, "stat"), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    size = read(fd, text, PROCFILE_STAT_BYTES - 1);
    close(fd);
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
    int found = -1;
    FILE *file = fopen(procfile_path(path, pid, tid, "status"), "re");
    while (file != NULL && found != 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            const char *at = line + length + 1;
            line[strcspn(line, "\n")] = '\0';
            snprintf(value, capacity, "%s", at + strspn(at, " \t"));
            found = 0;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
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
