/* SPDX-License-Identifier: MIT */
/* fakename.c: made-up names. See fakename.h. */
#include "collect/transform/fakename.h"

#include "analyze/base/arena.h"
#include "analyze/base/numbermap.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { DIGEST_BYTES = 32 /* of SHA-256 */ };
enum { HASH_BYTES = 6 }; /* of a keyed name: a million names have one in 500 chance of a repeat */

static const char *const prefixes[FAKENAME_KINDS] = {
    "function", "file", "module", "path", "argument", "thread", "pool", "mark", "mapping", "build"};

/* A name that was met. */
struct known {
    enum fakename_kind kind;
    size_t size;
    uint64_t number; /* of its kind, from 1 on */
    char fakename[FAKENAME_MOST];
    char name[];
};

struct fakenames {
    EVP_MAC_CTX *hash;      /* NULL: without a key */
    struct numbermap known; /* by hash of kind and name */
    uint64_t counts[FAKENAME_KINDS];
    struct arena memory;
};

static EVP_MAC_CTX *new_hash(const void *key, size_t key_size) {
    char digest[] = "SHA256";
    const OSSL_PARAM settings[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};
    EVP_MAC *kind = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *hash = kind != NULL ? EVP_MAC_CTX_new(kind) : NULL;
    EVP_MAC_free(kind); /* which lives as long as what it is needed for */
    if (hash != NULL && EVP_MAC_init(hash, key, key_size, settings) != 1) {
        EVP_MAC_CTX_free(hash);
        hash = NULL;
    }
    return hash;
}

struct fakenames *fakenames_new(const void *key, size_t key_size) {
    struct fakenames *fakenames = calloc(1, sizeof *fakenames);
    if (fakenames != NULL && key_size != 0) {
        fakenames->hash = new_hash(key, key_size);
        if (fakenames->hash == NULL) {
            free(fakenames);
            fakenames = NULL;
        }
    }
    return fakenames;
}

void fakenames_free(struct fakenames *fakenames) {
    if (fakenames != NULL) {
        EVP_MAC_CTX_free(fakenames->hash);
        numbermap_free(&fakenames->known);
        arena_free(&fakenames->memory);
        free(fakenames);
    }
}

/* DIGEST_BYTES that tell the name to nobody without the key. 0 or -1. */
static int hash_name(struct fakenames *fakenames, enum fakename_kind kind, const void *name,
                     size_t size, uint8_t *digest) {
    size_t got;
    return EVP_MAC_init(fakenames->hash, NULL, 0, NULL) == 1 &&
                   EVP_MAC_update(fakenames->hash, (const uint8_t *)prefixes[kind],
                                  strlen(prefixes[kind]) + 1) == 1 &&
                   EVP_MAC_update(fakenames->hash, name, size) == 1 &&
                   EVP_MAC_final(fakenames->hash, digest, &got, DIGEST_BYTES) == 1
               ? 0
               : -1;
}

static int make_name(struct fakenames *fakenames, struct known *known) {
    const char *prefix = prefixes[known->kind];
    uint8_t digest[DIGEST_BYTES];
    int used;
    if (fakenames->hash == NULL) {
        snprintf(known->fakename, sizeof known->fakename, "%s_%" PRIu64, prefix, known->number);
        return 0;
    }
    if (hash_name(fakenames, known->kind, known->name, known->size, digest) != 0) {
        return -1;
    }
    used = snprintf(known->fakename, sizeof known->fakename, "%s_", prefix);
    for (size_t i = 0; i < HASH_BYTES; i++) {
        used += snprintf(known->fakename + used, sizeof known->fakename - (size_t)used, "%02x",
                         digest[i]);
    }
    return 0;
}

/* NULL: out of memory. */
static struct known *find(struct fakenames *fakenames, enum fakename_kind kind, const void *name,
                          size_t size) {
    uint64_t hash = XXH3_64bits_withSeed(name, size, kind);
    struct known *known;
    while ((known = numbermap_get(&fakenames->known, hash)) != NULL) {
        if (known->kind == kind && known->size == size && memcmp(known->name, name, size) == 0) {
            return known;
        }
        hash++;
    }
    known = arena_alloc(&fakenames->memory, sizeof *known + size);
    if (known == NULL || numbermap_put(&fakenames->known, hash, known) != 0) {
        return NULL;
    }
    *known = (struct known){.kind = kind, .size = size, .number = ++fakenames->counts[kind]};
    memcpy(known->name, name, size);
    return make_name(fakenames, known) == 0 ? known : NULL;
}

const char *fakename_of(struct fakenames *fakenames, enum fakename_kind kind, const char *name,
                        size_t size) {
    const struct known *known = size != 0 ? find(fakenames, kind, name, size) : NULL;
    return size == 0 ? "" : known != NULL ? known->fakename : NULL;
}

int fakename_bytes(struct fakenames *fakenames, enum fakename_kind kind, uint8_t *bytes,
                   size_t size) {
    uint8_t digest[DIGEST_BYTES] = {0};
    const struct known *known = size != 0 ? find(fakenames, kind, bytes, size) : NULL;
    if (known == NULL) {
        return size == 0 ? 0 : -1;
    }
    if (fakenames->hash != NULL && hash_name(fakenames, kind, known->name, size, digest) != 0) {
        return -1;
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = digest[i % sizeof digest];
    }
    /* The number at the end, most significant byte first. */
    for (size_t i = 0; fakenames->hash == NULL && i < size && i < sizeof known->number; i++) {
        bytes[size - 1 - i] = (uint8_t)(known->number >> (8 * i));
    }
    return 0;
}
