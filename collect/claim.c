/* SPDX-License-Identifier: MIT */
/* claim.c: claiming a region file. See claim.h. */
#include "collect/claim.h"

#include "analyze/base/below.h"
#include "analyze/base/pathname.h"
#include "analyze/base/scope.h"
#include "analyze/read/filemap.h"
#include "analyze/read/procfile.h"
#include "collect/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A descriptor of the file's folder, if it is ours alone; else -1 with errno. */
static int claim_open_folder(const char *path) {
    char folder[sizeof((struct region *)0)->path];
    struct stat status;
    char *slash;
    snprintf(folder, sizeof folder, "%s", path);
    slash = strrchr(folder, '/');
    if (slash == NULL) {
        strcpy(folder, ".");
    } else {
        slash[slash == folder] = '\0';
    }
    SCOPE_FD int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 &&
        (fstat(fd, &status) != 0 || status.st_uid != geteuid() || (status.st_mode & 022) != 0)) {
        errno = EPERM;
        return -1;
    }
    return scope_keep(&fd);
}

/* The region's descriptor, or -1 with errno. */
static int claim_open_file(const char *path, struct stat *status) {
    const char *slash = strrchr(path, '/');
    SCOPE_FD int folder = claim_open_folder(path);
    SCOPE_FD int fd = folder >= 0 ? openat(folder, slash != NULL ? slash + 1 : path,
                                           O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                                  : -1;
    if (fd >= 0 && (fstat(fd, status) != 0 || !S_ISREG(status->st_mode) ||
                    status->st_uid != geteuid() || status->st_nlink != 1)) {
        errno = status->st_nlink == 0 ? ENOENT : EPERM;
        return -1;
    }
    return scope_keep(&fd);
}

static enum claim_status map_header(struct claim *claim, const struct stat *status,
                                    struct error *error) {
    void *bytes;
    if (status->st_size < MEMTRACE_HEADER_SIZE) {
        return CLAIM_EMPTY;
    }
    bytes = filemap_open(claim->fd, 0, MEMTRACE_HEADER_SIZE, FILEMAP_WRITES);
    if (bytes == NULL) {
        error_set(error, "cannot map %s: %s", claim->region.path, strerror(errno));
        return CLAIM_FAILED;
    }
    claim->header = bytes;
    if (memcmp(claim->header->magic, MEMTRACE_MAGIC, sizeof claim->header->magic) != 0) {
        return CLAIM_EMPTY;
    }
    if (!profile_knows_version(claim->header->version) ||
        claim->header->byte_order != MEMTRACE_BYTE_ORDER) {
        error_set(error, "%s has another profile format than this memtrace knows",
                  claim->region.path);
        return CLAIM_FAILED;
    }
    claim->start_monotonic_ns = claim->header->start_monotonic_ns;
    return CLAIM_OK;
}

enum claim_status claim_open(const char *path, struct claim *claim, struct error *error) {
    struct stat status;
    enum claim_status result;
    *claim = (struct claim){.fd = -1};
    if (region_parse(path, &claim->region) != 0) {
        error_set(error, "%s is not the name of a profile region", path);
        return CLAIM_FAILED;
    }
    claim->fd = claim_open_file(path, &status);
    if (claim->fd < 0 && errno == ENOENT) {
        return CLAIM_ABSENT;
    }
    if (claim->fd < 0) {
        error_set(error, "cannot use the profile region %s: %s", path, strerror(errno));
        return CLAIM_FAILED;
    }
    claim->device = status.st_dev;
    claim->inode = status.st_ino;
    if (flock(claim->fd, LOCK_EX | LOCK_NB) != 0) {
        result = CLAIM_BUSY;
    } else if (!claim_named(claim)) {
        result = CLAIM_ABSENT; /* its last holder was done with it before we got the lock */
    } else {
        result = map_header(claim, &status, error);
    }
    if (result == CLAIM_OK && region_is_foreign(claim->header)) {
        /* A number of another namespace is nobody's here, or some other process's. */
        claim->region.pid = region_pid_here(claim->header);
        claim->is_unseen = claim->region.pid == 0;
    }
    if (result == CLAIM_EMPTY &&
        !claim_process_exists(claim->region.pid, claim->region.start_ticks) &&
        !region_is_open(claim->fd)) {
        claim_unlink(claim); /* killed before it had counted anything */
    }
    if (result != CLAIM_OK) {
        claim_release(claim);
    }
    return result;
}

/* The mapping that the program has of it tells that it is no other file. */
static bool claim_has_mapped(const struct claim *claim) {
    SCOPE(procmaps_close) struct procmaps maps;
    struct procmapping mapping;
    int more;
    if (procmaps_open(&maps, claim->region.pid) != 0) {
        return true; /* not ours to look at: assume the worst */
    }
    while ((more = procmaps_next(&maps, &mapping)) != 0) {
        /* Its device is not compared: some file systems show another. */
        if (more > 0 && mapping.inode == claim->inode) {
            return true;
        }
    }
    return false;
}

/* Where the path leads from the program's root, or from ours. */
static int open_outside(struct claim *claim, struct stat *status) {
    char root[64];
    char folder[sizeof claim->region.path];
    const char *path = claim->region.path;
    struct stat process;
    size_t length = (size_t)snprintf(root, sizeof root, "/proc/%ld/root", (long)claim->region.pid);
    if (strncmp(path, root, length) == 0) {
        path += length;
    } else {
        strcpy(root, "/");
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(pathname_base(path) - path), path);
    claim->folder = below_folder(root, folder);
    claim->fd = claim->folder >= 0 ? below_open(root, path, O_RDWR | O_NOFOLLOW, status) : -1;
    claim->device = status->st_dev;
    claim->inode = status->st_ino;
    snprintf(root, sizeof root, "/proc/%ld", (long)claim->region.pid);
    if (claim->fd >= 0 &&
        (stat(root, &process) != 0 || status->st_uid != process.st_uid || status->st_nlink != 1 ||
         !claim_named(claim) || !claim_has_mapped(claim))) {
        errno = EPERM;
        return -1;
    }
    return claim->fd >= 0 ? 0 : -1;
}

enum claim_status claim_outside(pid_t pid, char *output, struct claim *claim, struct error *error) {
    struct stat status = {0};
    enum claim_status result;
    *claim = (struct claim){.fd = -1, .folder = -1, .is_outside = true, .output = output};
    if (region_find(pid, &claim->region, error) != 0) {
        return CLAIM_FAILED;
    }
    claim->region.pid = pid;
    if (region_start_ticks(pid, &claim->region.start_ticks) != 0 ||
        open_outside(claim, &status) != 0) {
        error_set(error, "cannot use the profile region of process %ld: %s", (long)pid,
                  strerror(errno));
        result = CLAIM_FAILED;
    } else if (flock(claim->fd, LOCK_EX | LOCK_NB) != 0) {
        result = CLAIM_BUSY;
    } else {
        result = map_header(claim, &status, error);
    }
    if (result != CLAIM_OK) {
        claim_release(claim);
    }
    return result;
}

void claim_release(struct claim *claim) {
    if (claim->is_outside && claim->folder >= 0) {
        close(claim->folder);
        claim->folder = -1;
    }
    if (claim->header != NULL) {
        filemap_close(claim->header, MEMTRACE_HEADER_SIZE);
    }
    scope_close(&claim->fd);
    claim->header = NULL;
    claim->fd = -1;
}

bool claim_named(const struct claim *claim) {
    const char *path = claim->region.path;
    struct stat status;
    int result = claim->is_outside
                     ? fstatat(claim->folder, pathname_base(path), &status, AT_SYMLINK_NOFOLLOW)
                     : lstat(path, &status);
    return result == 0 && status.st_dev == claim->device && status.st_ino == claim->inode;
}

uint64_t claim_size(const struct claim *claim) {
    struct stat status;
    return fstat(claim->fd, &status) == 0 ? (uint64_t)status.st_size : 0;
}

bool claim_is_cut(const struct claim *claim, uint64_t size_bytes) {
    return filemap_is_cut(claim->header) || claim_size(claim) < size_bytes;
}

void claim_unlink(const struct claim *claim) {
    if (claim_named(claim) && claim->is_outside) {
        unlinkat(claim->folder, pathname_base(claim->region.path), 0);
    } else if (claim_named(claim)) {
        unlink(claim->region.path);
    }
}

void claim_tell_children(const struct claim *claim) {
    uint32_t state = MEMTRACE_STATE_RUNNING;
    if (!claim_named(claim)) {
        __atomic_compare_exchange_n(&claim->header->state, &state, (uint32_t)MEMTRACE_STATE_WRITTEN,
                                    0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

uint64_t claim_time_ns(const struct claim *claim) {
    uint64_t now = clock_now_ns();
    return now > claim->start_monotonic_ns ? now - claim->start_monotonic_ns : 0;
}

void claim_copy_header(const struct claim *claim, struct memtrace_header *to) {
    const uint64_t *from = (const void *)claim->header;
    uint64_t words[sizeof *to / sizeof *from];
    MEMTRACE_STATIC_ASSERT(sizeof words == sizeof *to, "whole words");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    }
    memcpy(to, words, sizeof words);
}

void claim_set_malloc(const struct claim *claim, const struct memtrace_malloc *malloc_by) {
    uint64_t *to = (void *)&claim->header->malloc_by;
    uint64_t words[sizeof *malloc_by / sizeof *to];
    MEMTRACE_STATIC_ASSERT(sizeof words == sizeof *malloc_by, "whole words");
    MEMTRACE_STATIC_ASSERT(offsetof(struct memtrace_header, malloc_by) % sizeof *to == 0,
                           "at a word's place");
    memcpy(words, malloc_by, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        __atomic_store_n(&to[i], words[i], __ATOMIC_RELAXED);
    }
}

struct profile *claim_profile(const struct claim *claim, struct error *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", claim->fd);
    return profile_open_file(claim->fd, path, error);
}

/* A process looks like a zombie as soon as its first thread has ended: then it exists if it has
 * several, or that cannot be told. */
bool claim_process_exists(pid_t pid, uint64_t start_ticks) {
    uint64_t ticks;
    if (region_alive(pid, start_ticks)) {
        return true;
    }
    if (region_start_ticks(pid, &ticks) != 0 || ticks != start_ticks) {
        return false;
    }
    SCOPE_FOLDER DIR *tasks = procfile_folder("/proc/%ld/task", (long)pid);
    if (tasks == NULL) {
        return errno != ENOENT && errno != ESRCH;
    }
    int count = 0;
    while (count < 2 && procfile_next(tasks) != 0) {
        count++;
    }
    return count == 2;
}

bool claim_is_alive(const struct claim *claim) {
    return claim->is_unseen ? region_is_open(claim->fd)
                            : claim_process_exists(claim->region.pid, claim->region.start_ticks);
}

bool claim_in_use(const struct claim *claim) {
    if (claim->is_unseen) {
        return claim_is_alive(claim);
    }
    if (!claim_process_exists(claim->region.pid, claim->region.start_ticks)) {
        return false;
    }
    return (claim_load_u32(&claim->header->state) != MEMTRACE_STATE_EXECED && claim_named(claim)) ||
           claim_has_mapped(claim);
}
