/* SPDX-License-Identifier: MIT */
/* digest.c: SHA-256. See digest.h. */
#include "stream/digest.h"

#include "analyze/read/block.h"

#include <openssl/evp.h>

enum { CHUNK = 1 << 16 };

int digest_of_file(int fd, uint64_t offset, uint32_t size, uint8_t digest[WIRE_DIGEST]) {
    uint8_t chunk[CHUNK];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_fine = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    while (is_fine && size != 0) {
        size_t part = size < CHUNK ? size : CHUNK;
        is_fine = block_read_at(fd, chunk, part, offset) == (ssize_t)part &&
                  EVP_DigestUpdate(context, chunk, part) == 1;
        offset += part;
        size -= (uint32_t)part;
    }
    is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    return is_fine ? 0 : -1;
}
