/* SPDX-License-Identifier: MIT */
/* filehash.c: XXH3 of a file in pieces, SHA-256 of one. See filehash.h. */
#define XXH_INLINE_ALL
#include "stream/filehash.h"

#include "analyze/read/block.h"

#include <errno.h>
#include <openssl/evp.h>
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

int filehash_digest(int fd, uint64_t offset, uint32_t size, uint8_t digest[WIRE_DIGEST]) {
    uint8_t piece[FILEHASH_PIECE];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_fine = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    while (is_fine && size != 0) {
        size_t part = size < FILEHASH_PIECE ? size : FILEHASH_PIECE;
        is_fine = block_read_at(fd, piece, part, offset) == (ssize_t)part &&
                  EVP_DigestUpdate(context, piece, part) == 1;
        offset += part;
        size -= (uint32_t)part;
    }
    is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    return is_fine ? 0 : -1;
}
