/* SPDX-License-Identifier: MIT */
/* filehash.c: XXH3 of a file in pieces. See filehash.h. */
#define XXH_INLINE_ALL
#include "stream/filehash.h"

#include "analyze/read/block.h"

#include <errno.h>
#include <xxhash.h>

enum { SLICE = 1 << 22 };

void filehash_start(struct filehash *hash, int fd, uint64_t size) {
    hash->fd = fd;
    hash->size = size;
    hash->is_running = true;
}

int filehash_step(struct filehash *hash) {
    unsigned char bytes[FILEHASH_PIECE];
    for (uint64_t end = hash->done + SLICE; hash->done < hash->size && hash->done < end;) {
        uint64_t left = hash->size - hash->done;
        size_t wanted = left < FILEHASH_PIECE ? (size_t)left : FILEHASH_PIECE;
        errno = 0;
        if (block_read_at(hash->fd, bytes, wanted, hash->done) != (ssize_t)wanted) {
            return -1;
        }
        hash->hash = XXH3_64bits_withSeed(bytes, wanted, hash->hash);
        hash->done += wanted;
    }
    return hash->done == hash->size;
}

void filehash_end(struct filehash *hash) {
    hash->is_running = false;
}
