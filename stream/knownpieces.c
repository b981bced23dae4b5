/* SPDX-License-Identifier: MIT */
/* knownpieces.c: what was received before. See knownpieces.h. */
#include "stream/knownpieces.h"

#include "analyze/base/scope.h"
#include "analyze/read/block.h"
#include "stream/filehash.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

struct place {
    struct wire_piece piece;
    uint64_t offset;
    char *name; /* of the recording, below the folder; NULL: nothing is here */
};

struct knownpieces {
    size_t count, oldest;
    struct place places[KNOWNPIECES_MOST];
};

struct knownpieces *knownpieces_new(void) {
    return calloc(1, sizeof(struct knownpieces));
}

void knownpieces_free(struct knownpieces *known) {
    for (size_t i = 0; known != NULL && i < known->count; i++) {
        free(known->places[i].name);
    }
    free(known);
}

static size_t knownpieces_find(const struct knownpieces *known, const struct wire_piece *piece) {
    for (size_t i = 0; i < known->count; i++) {
        const struct place *place = &known->places[i];
        if (place->name != NULL && place->piece.size == piece->size &&
            memcmp(place->piece.digest, piece->digest, WIRE_DIGEST) == 0) {
            return i;
        }
    }
    return KNOWNPIECES_MOST;
}

static int place_open(const struct place *place, int folder) {
    return openat(folder, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

bool knownpieces_has(struct knownpieces *known, int folder, const struct wire_piece *piece) {
    size_t at = knownpieces_find(known, piece);
    struct place *place = &known->places[at];
    uint8_t digest[WIRE_DIGEST];
    if (at == KNOWNPIECES_MOST) {
        return false;
    }
    SCOPE_FD int fd = place_open(place, folder);
    if (fd >= 0 && filehash_digest(fd, place->offset, place->piece.size, digest) == 0 &&
        memcmp(digest, place->piece.digest, WIRE_DIGEST) == 0) {
        return true;
    }
    free(place->name);
    place->name = NULL;
    return false;
}

void knownpieces_add(struct knownpieces *known, const struct wire_piece *piece, const char *name,
                     uint64_t offset) {
    size_t at = known->count < KNOWNPIECES_MOST ? known->count : known->oldest;
    char *copy = knownpieces_find(known, piece) != KNOWNPIECES_MOST ? NULL : strdup(name);
    if (copy == NULL) {
        return;
    }
    if (known->count < KNOWNPIECES_MOST) {
        known->count++;
    } else {
        known->oldest = (known->oldest + 1) % KNOWNPIECES_MOST;
    }
    free(known->places[at].name);
    known->places[at] = (struct place){*piece, offset, copy};
}

int knownpieces_write(const struct knownpieces *known, int folder, const struct wire_piece *piece,
                      struct arrival *arrival) {
    size_t at = knownpieces_find(known, piece);
    uint8_t chunk[CHUNK];
    if (at == KNOWNPIECES_MOST) {
        return 0;
    }
    SCOPE_FD int fd = place_open(&known->places[at], folder);
    uint64_t from = known->places[at].offset;
    uint64_t end = from + known->places[at].piece.size;
    while (from < end) {
        size_t part = end - from < CHUNK ? (size_t)(end - from) : CHUNK;
        if (fd < 0 || block_read_at(fd, chunk, part, from) != (ssize_t)part) {
            return 0;
        }
        if (arrival_write(arrival, chunk, part) != 0) {
            return -1;
        }
        from += part;
    }
    return fd >= 0;
}
