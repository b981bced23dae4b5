/* SPDX-License-Identifier: MIT */
/* cachefolder.c: files kept from one command to the next. See cachefolder.h. */
#include "analyze/read/cachefolder.h"

#include "analyze/base/array.h"
#include "analyze/base/filemode.h"
#include "analyze/base/fullwrite.h"
#include "analyze/base/scope.h"

#define XXH_INLINE_ALL
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum {
    HEAD_BYTES = CACHEFOLDER_HEAD, /* the payload behind it is aligned */
    LEFT_OVER_S = 3600,            /* a temporary file that is older has no writer any more */
};

static const char head_magic[] = "MEMTRCCH"; /* as long as magic below, without its end */
static const char temporary_mark[] = ".new-";

struct head {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
    uint64_t size;     /* of the payload */
    uint64_t checksum; /* XXH3, 64 bits, of this head with a checksum of 0, then of the payload */
    uint64_t zero[4];
};
_Static_assert(sizeof(struct head) == HEAD_BYTES, "head size");

/* --- the folder ------------------------------------------------------------------------------- */

/* The cache's folder. false: it is turned off, or there is no place for one. */
static bool root_path(char path[PATH_MAX]) {
    const char *chosen = getenv("MEMTRACE_CACHE");
    const char *caches = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int length = 0;
    if (chosen != NULL) {
        length = snprintf(path, PATH_MAX, "%s", chosen);
    } else if (caches != NULL && caches[0] == '/') {
        length = snprintf(path, PATH_MAX, "%s/memtrace", caches);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(path, PATH_MAX, "%s/.cache/memtrace", home);
    }
    return length > 0 && length < PATH_MAX;
}

bool cachefolder_is_on(void) {
    char path[PATH_MAX];
    return root_path(path);
}

/* The kind's folder, open; -1: there is none. One that others may write to is not believed: what is
 * in it would be shown as the truth. */
static int cachefolder_open_kind(const struct cachefolder_kind *kind, bool make) {
    char path[PATH_MAX];
    struct stat status;
    size_t length;
    if (!root_path(path)) {
        return -1;
    }
    length = strlen(path);
    if ((size_t)snprintf(path + length, PATH_MAX - length, "/%s", kind->name) >=
        PATH_MAX - length) {
        return -1;
    }
    if (make && filemode_folders(path, 0700) == 0) {
        mkdir(path, 0700);
    }
    SCOPE_FD int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder >= 0 && fstat(folder, &status) == 0 && status.st_uid == geteuid() &&
                   (status.st_mode & (S_IWGRP | S_IWOTH)) == 0
               ? scope_keep(&folder)
               : -1;
}

static uint64_t checksum_of(const struct head *head, const struct cachefolder_piece *payload) {
    struct head sealed = *head;
    XXH3_state_t state;
    sealed.checksum = 0;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, &sealed, sizeof sealed);
    XXH3_64bits_update(&state, payload->bytes, payload->size);
    return XXH3_64bits_digest(&state);
}

/* --- loading ---------------------------------------------------------------------------------- */

int cachefolder_open(const struct cachefolder_kind *kind, const char *name, uint64_t *size) {
    SCOPE_FD int folder = cachefolder_open_kind(kind, false);
    SCOPE_FD int fd =
        folder >= 0 ? openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    struct stat status;
    struct head head;
    /* This user's own. */
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != geteuid() || pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        memcmp(head.magic, head_magic, sizeof head.magic) != 0 || head.version != kind->version ||
        head.size != (uint64_t)status.st_size - HEAD_BYTES) {
        return -1;
    }
    futimens(fd, NULL); /* it was used: see cachefolder_shrink() */
    *size = head.size;
    return scope_keep(&fd);
}

int cachefolder_load(const struct cachefolder_kind *kind, const char *name,
                     struct cachefolder_file *file) {
    struct cachefolder_piece payload;
    uint64_t size;
    SCOPE_FD int fd = cachefolder_open(kind, name, &size);
    *file = (struct cachefolder_file){0};
    if (fd < 0) {
        return -1;
    }
    file->mapping_size = (size_t)size + HEAD_BYTES;
    file->mapping = mmap(NULL, file->mapping_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file->mapping == MAP_FAILED) {
        *file = (struct cachefolder_file){0};
        return -1;
    }
    file->bytes = (unsigned char *)file->mapping + HEAD_BYTES;
    file->size = (size_t)size;
    payload = (struct cachefolder_piece){file->bytes, file->size};
    if (((const struct head *)file->mapping)->checksum != checksum_of(file->mapping, &payload)) {
        cachefolder_unload(file);
        return -1;
    }
    return 0;
}

void cachefolder_unload(struct cachefolder_file *file) {
    if (file->mapping != NULL) {
        munmap(file->mapping, file->mapping_size);
    }
    *file = (struct cachefolder_file){0};
}

/* --- keeping the folder small ----------------------------------------------------------------- */

struct used {
    char name[NAME_MAX + 1];
    uint64_t bytes;
    uint64_t when_ns;
};

/* Lists the files, what a killed writer left taken away. Returns their number. */
static size_t cachefolder_list(DIR *folder, struct used **list) {
    size_t count = 0;
    size_t room = 0;
    *list = NULL;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct stat status;
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode)) {
            continue;
        }
        if (strstr(entry->d_name, temporary_mark) != NULL &&
            time(NULL) - status.st_mtime > LEFT_OVER_S) {
            unlinkat(dirfd(folder), entry->d_name, 0);
            continue;
        }
        if (array_grow(list, &room, count, sizeof **list) != 0) {
            break;
        }
        (*list)[count].bytes = (uint64_t)status.st_size;
        (*list)[count].when_ns =
            (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
        snprintf((*list)[count++].name, sizeof(*list)->name, "%s", entry->d_name);
    }
    return count;
}

/* Removes what was not used for longest until all are within the bound. Takes the descriptor. */
static void cachefolder_shrink(const struct cachefolder_kind *kind, int descriptor) {
    DIR *folder = fdopendir(descriptor);
    struct used *list;
    uint64_t total = 0;
    size_t count;
    if (folder == NULL) {
        close(descriptor);
        return;
    }
    count = cachefolder_list(folder, &list);
    for (size_t i = 0; i < count; i++) {
        total += list[i].bytes;
    }
    if (total > kind->most_bytes) {
        array_sort_by(list, count, sizeof *list, offsetof(struct used, when_ns));
    }
    for (size_t i = 0; i < count && total > kind->most_bytes; i++) {
        unlinkat(descriptor, list[i].name, 0);
        total -= list[i].bytes;
    }
    free(list);
    closedir(folder);
}

/* --- storing ---------------------------------------------------------------------------------- */

void cachefolder_begin(struct cachefolder_writer *writer, const struct cachefolder_kind *kind,
                       const char *name) {
    const struct head none = {0};
    *writer = (struct cachefolder_writer){.kind = kind, .fd = -1};
    snprintf(writer->name, sizeof writer->name, "%s", name);
    snprintf(writer->temporary, sizeof writer->temporary, "%s%s%d-%lx", writer->name,
             temporary_mark, (int)getpid(), (unsigned long)(uintptr_t)writer);
    writer->folder = strlen(name) < sizeof writer->name ? cachefolder_open_kind(kind, true) : -1;
    if (writer->folder >= 0) {
        writer->fd = openat(writer->folder, writer->temporary,
                            O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    writer->failed = writer->fd < 0 || fullwrite(writer->fd, &none, sizeof none) != 0;
}

void cachefolder_add(struct cachefolder_writer *writer, const void *bytes, size_t size) {
    writer->size += size;
    writer->failed = writer->failed || writer->size + HEAD_BYTES > writer->kind->most_bytes ||
                     fullwrite(writer->fd, bytes, size) != 0;
}

/* What was written gets its head. 0 or -1. */
static int seal(const struct cachefolder_writer *writer) {
    struct head head = {.version = writer->kind->version, .size = writer->size};
    size_t size = (size_t)writer->size + HEAD_BYTES;
    unsigned char *mapping = mmap(NULL, size, PROT_READ, MAP_PRIVATE, writer->fd, 0);
    struct cachefolder_piece payload = {mapping + HEAD_BYTES, (size_t)writer->size};
    if (mapping == MAP_FAILED) {
        return -1;
    }
    memcpy(head.magic, head_magic, sizeof head.magic);
    head.checksum = checksum_of(&head, &payload);
    munmap(mapping, size);
    return fullwrite_at(writer->fd, &head, sizeof head, 0);
}

int cachefolder_finish(struct cachefolder_writer *writer, bool keeps) {
    int result = keeps && !writer->failed ? seal(writer) : -1;
    if (writer->fd >= 0 && close(writer->fd) != 0) {
        result = -1;
    }
    if (result == 0) {
        result = renameat(writer->folder, writer->temporary, writer->folder, writer->name);
    }
    if (result != 0 && writer->fd >= 0) {
        unlinkat(writer->folder, writer->temporary, 0);
    }
    if (result == 0) {
        cachefolder_shrink(writer->kind, writer->folder);
    } else if (writer->folder >= 0) {
        close(writer->folder);
    }
    return result == 0 ? 0 : -1;
}

int cachefolder_store(const struct cachefolder_kind *kind, const char *name,
                      const struct cachefolder_piece *pieces, size_t count) {
    struct cachefolder_writer writer;
    cachefolder_begin(&writer, kind, name);
    for (size_t i = 0; i < count; i++) {
        cachefolder_add(&writer, pieces[i].bytes, pieces[i].size);
    }
    return cachefolder_finish(&writer, true);
}
