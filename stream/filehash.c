/* SPDX-License-Identifier: MIT */
/* filehash.c: XXH3 of a file in slices. See filehash.h. */
#define XXH_INLINE_ALL
#include "stream/filehash.h"

#include "analyze/read/block.h"

#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

enum { SLICE = 1 << 22, PIECE = 1 << 16 };

int filehash_start(struct filehash *hash, int fd, uint64_t size) {
    filehash_end(hash);
    *hash = (struct filehash){.fd = fd, .size = size, .state = XXH3_createState()};
    return hash->state != NULL && XXH3_64bits_reset(hash->state) == XXH_OK ? 0 : -1;
}

int filehash_step(struct filehash *hash) {
    unsigned char bytes[PIECE];
    for (uint64_t end = hash->done + SLICE; hash->done < hash->size && hash->done < end;) {
        uint64_t left = hash->size - hash->done;
        size_t wanted = left < PIECE ? (size_t)left : PIECE;
        errno = 0;
        if (block_read_at(hash->fd, bytes, wanted, hash->done) != (ssize_t)wanted) {
            return -1;
        }
        XXH3_64bits_update(hash->state, bytes, wanted);
        hash->done += wanted;
    }
    if (hash->done < hash->size) {
        return 0;
    }
    hash->hash = XXH3_64bits_digest(hash->state);
    return 1;
}

void filehash_end(struct filehash *hash) {
    XXH3_freeState(hash->state);
    hash->state = NULL;
}
