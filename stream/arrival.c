/* SPDX-License-Identifier: MIT */
/* arrival.c: files of received recordings. See arrival.h. */
#include "stream/arrival.h"

#include "analyze/base/filemode.h"
#include "analyze/base/scope.h"
#include "analyze/read/block.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MOST = 1000 };

/* ---- Which file ---- */

/* The folder of the host; -1: errno. */
static int arrival_open_folder(int folder, char *name) {
    char *slash = strchr(name, '/');
    int fd;
    int reason;
    *slash = '\0';
    reason = mkdirat(folder, name, 0777) == 0 || errno == EEXIST ? 0 : errno;
    fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *slash = '/';
    errno = fd < 0 && errno == ENOENT && reason != 0 ? reason : errno;
    return fd;
}

/* Whether the open file may be this recording: it begins so, or has not begun. */
static bool arrival_is_same(struct arrival *arrival, const uint8_t id[WIRE_ID]) {
    uint8_t head[SOURCE_HEAD];
    uint8_t there[WIRE_ID];
    struct stat status;
    if (fstat(arrival->fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        return false;
    }
    arrival->size = arrival->next = arrival->synced = (uint64_t)status.st_size;
    size_t there_bytes = status.st_size < SOURCE_HEAD ? (size_t)status.st_size : SOURCE_HEAD;
    if (block_read_at(arrival->fd, head, there_bytes, 0) != (ssize_t)there_bytes) {
        return false;
    }
    if (there_bytes < SOURCE_HEAD) {
        /* Neither somebody's note, nor what a link leads to. */
        size_t magic_bytes = sizeof MEMTRACE_RECORDING_MAGIC - 1;
        arrival->next = arrival->synced = 0;
        return status.st_nlink == 1 &&
               memcmp(head, MEMTRACE_RECORDING_MAGIC,
                      there_bytes < magic_bytes ? there_bytes : magic_bytes) == 0;
    }
    source_id(head, there);
    return memcmp(there, id, WIRE_ID) == 0;
}

/* 1: it is open; 0: the name is another one's; -1: errno. */
static int arrival_try_name(struct arrival *arrival, int folder) {
    SCOPE_FD int host = arrival_open_folder(folder, arrival->name);
    int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    const char *name = strchr(arrival->name, '/') + 1;
    if (host < 0) {
        return -1;
    }
    arrival->fd = openat(host, name, flags);
    if (arrival->fd < 0 && errno == ENOENT) {
        arrival->fd = openat(host, name, flags | O_CREAT | O_EXCL, filemode());
    }
    if (arrival->fd >= 0) {
        arrival->folder = scope_keep(&host);
        return 1;
    }
    return errno == ELOOP || errno == EISDIR || errno == ENXIO ? 0 : -1;
}

int arrival_open(struct arrival *arrival, int folder, const struct wire_hello *hello,
                 bool (*is_other)(void *context, const char *name, const uint8_t *id),
                 void *context, struct error *error) {
    *arrival = ARRIVAL_NONE;
    memcpy(arrival->id, hello->id, WIRE_ID);
    for (unsigned n = 1; n <= NAMES_MOST; n++) {
        int opened;
        source_name(hello, n, arrival->name);
        opened =
            is_other(context, arrival->name, hello->id) ? 0 : arrival_try_name(arrival, folder);
        if (opened < 0) {
            int reason = errno;
            error_set(error, "cannot write %s: %s", arrival->name, strerror(reason));
            errno = reason;
            return -1;
        }
        if (opened == 1 && arrival_is_same(arrival, hello->id)) {
            return 0;
        }
        arrival_close(arrival);
    }
    error_set(error, "%s and %d names after it are other files", arrival->name, NAMES_MOST);
    errno = EEXIST;
    return -1;
}

void arrival_close(struct arrival *arrival) {
    filehash_end(&arrival->hash);
    scope_close(&arrival->fd);
    scope_close(&arrival->folder);
    arrival->fd = arrival->folder = -1;
}

/* ---- What comes ---- */

int arrival_write(struct arrival *arrival, const void *bytes, size_t size) {
    bool had_head = arrival->next >= SOURCE_HEAD;
    for (const char *from = bytes; size > 0;) {
        ssize_t written = pwrite(arrival->fd, from, size, (off_t)arrival->next);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            errno = written == 0 ? ENOSPC : errno;
            return -1;
        }
        from += written;
        size -= (size_t)written;
        arrival->next += (uint64_t)written;
        if (arrival->size < arrival->next) {
            arrival->size = arrival->next;
        }
    }
    if (!had_head && arrival->next >= SOURCE_HEAD) {
        struct arrival check = *arrival;
        if (!arrival_is_same(&check, arrival->id)) {
            errno = EBADMSG;
            return -1;
        }
    }
    return 0;
}

void arrival_synced(struct arrival *arrival, uint64_t below) {
    arrival->synced = below;
    scope_close(&arrival->folder);
    arrival->folder = -1;
}

void arrival_cut(struct arrival *arrival, uint64_t size) {
    arrival->size = arrival->next = arrival->synced = size;
}

int arrival_end(struct arrival *arrival, uint64_t size, uint64_t hash) {
    if (arrival->size > size) {
        if (ftruncate(arrival->fd, (off_t)size) != 0) {
            return -1;
        }
        arrival->size = size;
    }
    arrival->wanted_hash = hash;
    return 0;
}

void arrival_compare(struct arrival *arrival) {
    arrival->hash = (struct filehash){0};
    filehash_start(&arrival->hash, arrival->fd, arrival->size);
}

int arrival_step(struct arrival *arrival) {
    int done = filehash_step(&arrival->hash);
    if (done == 0) {
        return 0;
    }
    bool is_equal = done == 1 && arrival->hash.hash == arrival->wanted_hash;
    filehash_end(&arrival->hash);
    if (!is_equal) {
        arrival->next = arrival->synced = 0;
    }
    return is_equal ? 1 : -1;
}
