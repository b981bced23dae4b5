/* SPDX-License-Identifier: MIT */
/* embedded.c: program files out of a recording. See embedded.h. */
#include "analyze/read/embedded.h"

#include "analyze/base/array.h"
#include "analyze/base/filemode.h"
#include "analyze/base/fullwrite.h"
#include "analyze/base/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SECOND_NS = 1000000000 };

/* One block's share of a file. */
struct piece {
    struct embedded file;
    uint64_t offset;
    const unsigned char *bytes;
    size_t size;
};

/* Whether the path is absolute and leads to nothing but below the folder it is put after. */
static bool path_is_safe(const char *path) {
    return path[0] == '/' && path[1] != '\0' && strstr(path, "/../") == NULL &&
           (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
}

/* 0, or -1: the block makes no sense. */
static int read_piece(const struct recording_buffer *buffer, struct piece *piece) {
    struct memtrace_embedded head;
    size_t rest;
    const char *path;
    if (buffer->size < sizeof head) {
        return -1;
    }
    memcpy(&head, buffer->bytes, sizeof head);
    rest = buffer->size - sizeof head;
    path = (const char *)buffer->bytes + sizeof head;
    if (head.path_size < 2 || head.path_size > sizeof piece->file.path || head.path_size > rest ||
        path[head.path_size - 1] != '\0' || head.build_id_size == 1 ||
        head.build_id_size > sizeof head.build_id || !path_is_safe(path)) {
        return -1;
    }
    *piece = (struct piece){.offset = head.offset,
                            .bytes = buffer->bytes + sizeof head + head.path_size,
                            .size = rest - head.path_size};
    piece->file = (struct embedded){
        .what = head.what, .size = head.size, .build_id_size = head.build_id_size};
    memcpy(piece->file.build_id, head.build_id, sizeof head.build_id);
    snprintf(piece->file.path, sizeof piece->file.path, "%s", path);
    return head.offset <= head.size && piece->size <= head.size - head.offset ? 0 : -1;
}

/* The next piece in the recording, from block *next on; damaged ones are left out. 0; -1: there is
 * none; or RECORDING_NO_MEMORY. */
static int next_piece(const struct recording *recording, size_t *next,
                      struct recording_buffer *buffer, struct piece *piece, struct error *error) {
    while (*next < recording->block_count) {
        size_t i = (*next)++;
        int result = recording->blocks[i].block.kind == MEMTRACE_BLOCK_FILE
                         ? recording_payload(recording, i, buffer, error)
                         : -1;
        if (result == RECORDING_NO_MEMORY || (result == 0 && read_piece(buffer, piece) == 0)) {
            return result;
        }
    }
    return -1;
}

int embedded_list(const struct recording *recording, struct embedded **list, size_t *count,
                  struct error *error) {
    SCOPE(recording_buffer_free) struct recording_buffer buffer = {0};
    struct piece piece;
    size_t next = 0;
    int result;
    *list = NULL;
    *count = 0;
    while ((result = next_piece(recording, &next, &buffer, &piece, error)) == 0) {
        if (piece.offset == 0 && array_grow_by_count(list, *count, sizeof **list) != 0) {
            error_set(error, "out of memory");
            result = RECORDING_NO_MEMORY;
            break;
        }
        if (piece.offset == 0) {
            (*list)[(*count)++] = piece.file;
        }
    }
    if (result == RECORDING_NO_MEMORY) {
        free(*list);
        *list = NULL;
        return -1;
    }
    return 0;
}

/* --- extracting ------------------------------------------------------------------------------- */

/* false: the name is too long. */
static bool name_of_debug_file(const char *folder, const struct embedded *file,
                               char path[PATH_MAX]) {
    char id[2 * sizeof file->build_id + 1];
    int length;
    for (size_t i = 0; i < file->build_id_size; i++) {
        snprintf(id + 2 * i, 3, "%02x", file->build_id[i]);
    }
    length = file->build_id_size == 0
                 ? snprintf(path, PATH_MAX, "%s/.no-build-id%s.debug", folder, file->path)
                 : snprintf(path, PATH_MAX, "%s/.build-id/%.2s/%s.debug", folder, id, id + 2);
    return length < PATH_MAX;
}

/* Its first piece makes the file, so that an older one of that name, or what a link of that name
 * leads to, stays as it is. 0, or -1 with errno. */
static int piece_write(char *path, const struct piece *piece, const struct timespec *when) {
    struct timespec times[2] = {*when, *when};
    int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (piece->offset == 0 ? O_CREAT | O_EXCL : 0);
    int result;
    int reason;
    if (piece->offset == 0 &&
        (filemode_folders(path, 0777) != 0 || (unlink(path) != 0 && errno != ENOENT))) {
        return -1;
    }
    SCOPE_FD int fd = open(path, flags, filemode());
    if (fd < 0) {
        return -1;
    }
    result = fullwrite_at(fd, piece->bytes, piece->size, piece->offset);
    reason = errno;
    futimens(fd, times);
    errno = reason;
    return result;
}

static int extract_piece(const char *folder, const struct piece *piece, const struct timespec *when,
                         struct error *error) {
    const struct embedded *file = &piece->file;
    bool whole = file->what == MEMTRACE_EMBEDDED_WHOLE;
    char path[PATH_MAX];
    char name[PATH_MAX];
    bool fits;
    errno = ENAMETOOLONG;
    fits = whole ? snprintf(path, sizeof path, "%s%s", folder, file->path) < PATH_MAX
                 : name_of_debug_file(folder, file, path);
    if (!fits || piece_write(path, piece, when) != 0) {
        return error_set(error, "cannot write %.400s: %s", path, strerror(errno));
    }
    /* A whole file has its symbols in it: it is found as such, too, if no other file is. */
    if (whole && (!name_of_debug_file(folder, file, name) || filemode_folders(name, 0777) != 0 ||
                  (link(path, name) != 0 && errno != EEXIST))) {
        return error_set(error, "cannot write %.400s: %s", path, strerror(errno));
    }
    return 0;
}

/* Program files become a third or a tenth when they are compressed; a few kilobytes can also be
 * gigabytes of zeros. Known before anything is written. */
static int check_size(const struct recording *recording, uint64_t bytes_most, struct error *error) {
    enum { RATIO = 64 };
    uint64_t bytes = 0;
    uint64_t most = bytes_most != 0 ? bytes_most : (UINT64_C(64) << 20) + recording->size * RATIO;
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct memtrace_block_header *block = &recording->blocks[i].block;
        bytes += block->kind == MEMTRACE_BLOCK_FILE ? block->raw_size : 0;
    }
    return bytes <= most
               ? 0
               : error_set(error, "%s has files of %.1f MiB, but only %.1f MiB would be written%s",
                           recording->path, (double)bytes / (1 << 20), (double)most / (1 << 20),
                           bytes_most != 0
                               ? ""
                               : ", as many as a recording of its size can have; --max-size "
                                 "SIZE writes more");
}

int embedded_extract(const struct recording *recording, const char *folder, uint64_t bytes_most,
                     size_t *count, struct error *error) {
    uint64_t start_ns = recording->program.start_realtime_ns;
    /* The files' time: the same each time, so that caches know them again. */
    struct timespec when = {.tv_sec = (time_t)(start_ns / SECOND_NS),
                            .tv_nsec = (long)(start_ns % SECOND_NS)};
    SCOPE(recording_buffer_free) struct recording_buffer buffer = {0};
    struct piece piece;
    size_t next = 0;
    int result = check_size(recording, bytes_most, error);
    int found = -1;
    *count = 0;
    while (result == 0 && (found = next_piece(recording, &next, &buffer, &piece, error)) == 0) {
        result = extract_piece(folder, &piece, &when, error);
        *count += result == 0 && piece.offset == 0;
    }
    return result == 0 && found == RECORDING_NO_MEMORY ? RECORDING_NO_MEMORY : result;
}
