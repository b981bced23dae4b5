/* SPDX-License-Identifier: MIT */
/* copy.c: all-or-nothing copies with holes, and names for them. See copy.h. */
#include "collect/copy.h"

#include "analyze/base/filemode.h"
#include "analyze/base/fullwrite.h"
#include "analyze/base/pathname.h"
#include "analyze/base/scope.h"
#include "analyze/read/block.h"
#include "collect/compress.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 256 * 1024, LAST_NUMBER = 999 };

/* ---- Names in and beside the folder of a run ---- */

enum { COPY_FOLDER = 4160 /* bytes of its path: struct runwriter */ };

/* STEM.PID.mtp, with .2, .3 and so on before the ending; of recordings, whose parts are called so,
 * with -2 and so on. */
static bool copy_is_taken(const char *stem, uint32_t pid, const char *ending, unsigned number,
                          char *path, size_t capacity) {
    char infix[16] = "";
    if (number > 1) {
        snprintf(infix, sizeof infix, "%c%u", strcmp(ending, ".mtr") == 0 ? '-' : '.', number);
    }
    snprintf(path, capacity, "%s.%" PRIu32 "%s%s", stem, pid, infix, ending);
    return access(path, F_OK) == 0;
}

/* A name that nobody has: a pid is of one process only within a namespace, and for a while. Names
 * are taken from the first on, so a few looks are enough. */
static void copy_free_path(const char *stem, uint32_t pid, const char *ending, char *path,
                           size_t capacity) {
    unsigned taken = 1;
    unsigned end = 2;
    if (!copy_is_taken(stem, pid, ending, 1, path, capacity)) {
        return;
    }
    while (end < 1u << 30 && copy_is_taken(stem, pid, ending, end, path, capacity)) {
        taken = end;
        end *= 2;
    }
    while (end - taken > 1) {
        unsigned middle = taken + (end - taken) / 2;
        if (copy_is_taken(stem, pid, ending, middle, path, capacity)) {
            taken = middle;
        } else {
            end = middle;
        }
    }
    copy_is_taken(stem, pid, ending, end, path, capacity);
}

void copy_path_in(const char *folder, const char *program, uint32_t pid, const char *ending,
                  char *path, size_t capacity) {
    char stem[COPY_FOLDER + 256];
    snprintf(stem, sizeof stem, "%s/%.200s", folder, program[0] != '\0' ? program : "unknown");
    copy_free_path(stem, pid, ending, path, capacity);
}

bool copy_is_folder_of(const char *path, uint64_t run) {
    char mark[COPY_FOLDER + 64];
    snprintf(mark, sizeof mark, "%s/.run-%" PRIu64, path, run);
    return run != 0 && access(mark, F_OK) == 0;
}

void copy_path_beside(const char *path, const struct memtrace_header *header, const char *ending,
                      char *to, size_t capacity) {
    char stem[COPY_FOLDER];
    size_t length = strlen(path);
    if (copy_is_folder_of(path, header->run.id)) {
        copy_path_in(path, memtrace_program(header), header->pid, ending, to, capacity);
        return;
    }
    length -= pathname_ends_in(path, ending) ? strlen(ending) : 0;
    snprintf(stem, sizeof stem, "%.*s", (int)length, path);
    copy_free_path(stem, header->pid, ending, to, capacity);
}

/* ---- Copies ---- */

/* With its holes; a source that is shorter reads as zeros. 0, or -1 with errno. */
static int copy_data(int from, int to, off_t size) {
    SCOPE_MEMORY char *buffer = malloc(CHUNK);
    off_t at = 0;
    if (buffer == NULL || ftruncate(to, size) != 0) {
        return -1;
    }
    while (at < size) {
        off_t start = lseek(from, at, SEEK_DATA);
        off_t end = start < 0 ? start : lseek(from, start, SEEK_HOLE);
        if (start < 0 && errno == ENXIO) {
            break; /* nothing but a hole is left */
        }
        if (start < 0 || end <= start) { /* a file system without holes */
            start = at;
            end = size;
        }
        end = end < size ? end : size;
        for (ssize_t count = 1; start < end && count > 0; start += count) {
            size_t wanted = end - start < CHUNK ? (size_t)(end - start) : CHUNK;
            count = block_read_at(from, buffer, wanted, (uint64_t)start);
            if (count < 0 || fullwrite_at(to, buffer, (size_t)count, (uint64_t)start) != 0) {
                return -1;
            }
        }
        at = end > at ? end : size;
    }
    return 0;
}

/* Only where nobody has the name yet: target, target.SUFFIX, target.SUFFIX.2, ... 0, or -1 with
 * errno. */
static int rename_free(const char *from, const char *target, unsigned suffix, char *path,
                       size_t capacity) {
    for (unsigned number = 0; number <= LAST_NUMBER; number++) {
        int length = number == 0   ? snprintf(path, capacity, "%s", target)
                     : number == 1 ? snprintf(path, capacity, "%s.%u", target, suffix)
                                   : snprintf(path, capacity, "%s.%u.%u", target, suffix, number);
        if ((size_t)length >= capacity) {
            errno = ENAMETOOLONG;
            return -1;
        }
        if (renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_NOREPLACE) == 0) {
            return 0;
        }
        if (errno == EINVAL || errno == ENOSYS) { /* a file system without renameat2's flags */
            if (link(from, path) == 0) {
                unlink(from);
                return 0;
            }
        }
        if (errno != EEXIST) {
            return -1;
        }
    }
    return -1;
}

bool copy_discards(const char *target) {
    struct stat status;
    struct stat null_status;
    return stat(target, &status) == 0 && S_ISCHR(status.st_mode) &&
           stat("/dev/null", &null_status) == 0 && status.st_rdev == null_status.st_rdev;
}

/* Compressed, or as it is where that is not to be. 0, or -1 with errno. */
static int copy_under(int fd, uint64_t size, const char *target, enum copy_mode mode,
                      unsigned suffix, char *path, size_t capacity) {
    const struct compress_source source = {.fd = fd, .size = size};
    const char *slash = strrchr(target, '/');
    int folder = slash != NULL ? (int)(slash + 1 - target) : 0;
    struct memtrace_owner owner;
    char name[PATH_MAX];
    enum compress_status status;
    mode_t mask;
    int result;
    int to;
    if ((size_t)snprintf(name, sizeof name, "%.*s.memtrace-XXXXXX", folder, target) >=
        sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    to = mkostemp(name, O_CLOEXEC);
    if (to < 0) {
        return -1;
    }
    status = compress_profile(&source, BLOCK_PACK_LEVEL, to);
    result = status == COMPRESS_DONE ? 0 : -1;
    if (status == COMPRESS_SMALL && ftruncate(to, 0) == 0) {
        result = copy_data(fd, to, (off_t)size);
    }
    mask = umask(077);
    umask(mask);
    if (result == 0) {
        result = fchmod(to, filemode() & ~mask);
    }
    if (pread(fd, &owner, sizeof owner, offsetof(struct memtrace_header, owner)) == sizeof owner) {
        owner_give(to, &owner);
    }
    if (close(to) != 0) {
        result = -1;
    }
    if (result == 0 && mode == COPY_KEEP) {
        result = rename_free(name, target, suffix, path, capacity);
    } else if (result == 0) {
        snprintf(path, capacity, "%s", target);
        result = rename(name, target);
    }
    if (result != 0) {
        int reason = errno;
        unlink(name);
        errno = reason;
    }
    return result;
}

int copy_region(int fd, uint64_t size, const char *target, enum copy_mode mode, unsigned suffix,
                char *path, size_t capacity, struct error *error) {
    struct stat status;
    if (target[0] == '\0') {
        errno = ENOENT;
    } else if (copy_discards(target)) {
        snprintf(path, capacity, "%s", target);
        return 0;
    } else if (stat(target, &status) == 0 && !S_ISREG(status.st_mode)) {
        /* A device or a folder is not to be replaced by a file. */
        errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    } else if (copy_under(fd, size, target, mode, suffix, path, capacity) == 0) {
        return 0;
    }
    return error_set(error, "cannot write the profile %s: %s", target, strerror(errno));
}

int copy_live_to(int fd, uint64_t size, const char *target, char *path, size_t capacity,
                 struct error *error) {
    uint32_t state = MEMTRACE_STATE_COPIED; /* the copy is no running program's */
    if (copy_region(fd, size, target, COPY_REPLACE, 0, path, capacity, error) != 0) {
        return -1;
    }
    SCOPE_FD int copy = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    return copy >= 0 && pwrite(copy, &state, sizeof state,
                               offsetof(struct memtrace_header, state)) == sizeof state
               ? 0
               : error_set(error, "cannot write %s: %s", path, strerror(errno));
}

int copy_live(const struct claim *claim, char *path, size_t capacity, struct error *error) {
    const char *output = claim->header->output;
    char target[sizeof claim->header->output + 16];
    size_t length = strnlen(output, sizeof claim->header->output - 1);
    struct stat status;
    if (stat(output, &status) == 0 && !S_ISREG(status.st_mode)) {
        /* /dev/null takes a copy, too; nothing is made beside it. */
        snprintf(target, sizeof target, "%s", output);
    } else {
        bool has_ending = length >= 4 && memcmp(output + length - 4, ".mtp", 4) == 0;
        snprintf(target, sizeof target, "%.*s.limit%s", (int)(length - (has_ending ? 4 : 0)),
                 output, has_ending ? ".mtp" : "");
    }
    return copy_live_to(claim->fd, claim_load_u64(&claim->header->end), target, path, capacity,
                        error);
}
