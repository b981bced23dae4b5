/* SPDX-License-Identifier: MIT */
/* uifiles.c: see uifiles.h. */
#include "web/server/uifiles.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { LEVEL = 12, FILES_MOST = 256 };

static struct packed {
    void *bytes;
    size_t size;
    bool is_tried;
} packed[FILES_MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const struct uifile *uifiles_find(const char *path) {
    for (size_t i = 0; i < uifiles_count; i++) {
        if (strcmp(uifiles_table[i].path, path) == 0) {
            return &uifiles_table[i];
        }
    }
    return NULL;
}

static void pack(const struct uifile *file, struct packed *to) {
    size_t room = ZSTD_compressBound(file->size);
    void *bytes = malloc(room);
    size_t size = bytes != NULL ? ZSTD_compress(bytes, room, file->bytes, file->size, LEVEL) : 0;
    to->is_tried = true;
    if (bytes == NULL || ZSTD_isError(size) || size >= file->size) {
        free(bytes);
        return;
    }
    to->bytes = bytes;
    to->size = size;
}

const void *uifiles_packed(const struct uifile *file, size_t *size) {
    size_t place = (size_t)(file - uifiles_table);
    const void *bytes = NULL;
    if (place < FILES_MOST) {
        pthread_mutex_lock(&lock);
        if (!packed[place].is_tried) {
            pack(file, &packed[place]);
        }
        bytes = packed[place].bytes;
        *size = packed[place].size;
        pthread_mutex_unlock(&lock);
    }
    return bytes;
}
