/* SPDX-License-Identifier: MIT */
/* held.c: claiming a region file. See held.h. */
#include "collect/held.h"

#include "collect/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A descriptor of the file's folder, if it is ours alone; else -1 with errno. */
static int open_folder(const char *path) {
    char folder[sizeof((struct region *)0)->path];
    struct stat status;
    char *slash;
    int fd;
    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash == NULL) {
        strcpy(folder, ".");
    } else {
        slash[slash == folder] = '\0';
    }
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &status) != 0 || status.st_uid != geteuid() || (status.st_mode & 022) != 0) {
        close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

/* The region's descriptor, or -1 with errno. */
static int open_file(const char *path, struct stat *status) {
    const char *slash = strrchr(path, '/');
    int folder = open_folder(path);
    int fd;
    int reason;
    if (folder < 0) {
        return -1;
    }
    fd = openat(folder, slash != NULL ? slash + 1 : path,
                O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    reason = errno;
    close(folder);
    errno = reason;
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, status) != 0 || !S_ISREG(status->st_mode) || status->st_uid != geteuid() ||
        status->st_nlink != 1) {
        reason = status->st_nlink == 0 ? ENOENT : EPERM;
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

static bool same_file(const char *path, dev_t device, ino_t inode) {
    struct stat status;
    return lstat(path, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

static enum held_status map_header(struct held *held, const struct stat *status,
                                   struct error *error) {
    void *bytes;
    if (status->st_size < MEMTRACE_HEADER_SIZE) {
        return HELD_EMPTY;
    }
    bytes = mmap(NULL, MEMTRACE_HEADER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, held->fd, 0);
    if (bytes == MAP_FAILED) {
        error_set(error, "cannot map %s: %s", held->region.path, strerror(errno));
        return HELD_FAILED;
    }
    held->header = bytes;
    if (memcmp(held->header->magic, MEMTRACE_MAGIC, sizeof held->header->magic) != 0) {
        return HELD_EMPTY;
    }
    if (!profile_knows_version(held->header->version) ||
        held->header->byte_order != MEMTRACE_BYTE_ORDER) {
        error_set(error, "%s has another profile format than this memtrace knows",
                  held->region.path);
        return HELD_FAILED;
    }
    return HELD_OK;
}

enum held_status held_open(const char *path, struct held *held, struct error *error) {
    struct stat status;
    enum held_status result;
    *held = (struct held){.fd = -1};
    if (region_parse(path, &held->region) != 0) {
        error_set(error, "%s is not the name of a profile region", path);
        return HELD_FAILED;
    }
    held->fd = open_file(path, &status);
    if (held->fd < 0 && errno == ENOENT) {
        return HELD_ABSENT;
    }
    if (held->fd < 0) {
        error_set(error, "cannot use the profile region %s: %s", path, strerror(errno));
        return HELD_FAILED;
    }
    held->device = status.st_dev;
    held->inode = status.st_ino;
    if (flock(held->fd, LOCK_EX | LOCK_NB) != 0) {
        result = HELD_BUSY;
    } else if (!held_named(held)) {
        result = HELD_ABSENT; /* its last holder was done with it before we got the lock */
    } else {
        result = map_header(held, &status, error);
    }
    if (result == HELD_EMPTY && !held_process_exists(held->region.pid, held->region.start_ticks) &&
        !region_is_open(held->fd)) {
        held_unlink(held); /* killed before it had counted anything */
    }
    if (result != HELD_OK) {
        held_release(held);
    }
    return result;
}

void held_release(struct held *held) {
    if (held->header != NULL) {
        munmap(held->header, MEMTRACE_HEADER_SIZE);
    }
    if (held->fd >= 0) {
        close(held->fd);
    }
    held->header = NULL;
    held->fd = -1;
}

bool held_named(const struct held *held) {
    return same_file(held->region.path, held->device, held->inode);
}

void held_unlink(const struct held *held) {
    if (held_named(held)) {
        unlink(held->region.path);
    }
}

uint64_t held_time_ns(const struct held *held) {
    uint64_t now = clock_now_ns();
    return now > held->header->start_monotonic_ns ? now - held->header->start_monotonic_ns : 0;
}

struct profile *held_profile(const struct held *held, struct error *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", held->fd);
    return profile_open(path, error);
}

/* Threads of a process; 0: there is none. Where that cannot be told, as if there were several. */
static int count_tasks(pid_t pid) {
    char path[64];
    struct dirent *entry;
    int count = 0;
    DIR *tasks;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    tasks = opendir(path);
    if (tasks == NULL) {
        return errno == ENOENT || errno == ESRCH ? 0 : 2;
    }
    while ((entry = readdir(tasks)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}

bool held_process_exists(pid_t pid, uint64_t start_ticks) {
    uint64_t ticks;
    if (region_alive(pid, start_ticks)) {
        return true;
    }
    /* A process looks like a zombie as soon as its first thread has ended. */
    return region_start_ticks(pid, &ticks) == 0 && ticks == start_ticks && count_tasks(pid) > 1;
}

static bool has_mapped(const struct held *held) {
    char path[64];
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    FILE *maps;
    snprintf(path, sizeof path, "/proc/%ld/maps", (long)held->region.pid);
    maps = fopen(path, "re");
    if (maps == NULL) {
        return true; /* not ours to look at: assume the worst */
    }
    while (!found && getline(&line, &size, maps) > 0) {
        unsigned long long inode; /* its device is not compared: some file systems show another */
        found = sscanf(line, "%*s %*s %*s %*s %llu", &inode) == 1 && inode == held->inode;
    }
    free(line);
    fclose(maps);
    return found;
}

/* Of a process in another namespace of pids only the kernel knows whether it is there. */
bool held_is_foreign(const struct held *held) {
    uint64_t there = held->header->run.pid_namespace;
    uint64_t here = region_namespace();
    return there != 0 && here != 0 && there != here;
}

bool held_in_use(const struct held *held) {
    if (held_is_foreign(held)) {
        return region_is_open(held->fd);
    }
    if (!held_process_exists(held->region.pid, held->region.start_ticks)) {
        return false;
    }
    return (held_load_u32(&held->header->state) != MEMTRACE_STATE_EXECED && held_named(held)) ||
           has_mapped(held);
}
