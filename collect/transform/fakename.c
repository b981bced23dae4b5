/* SPDX-License-Identifier: MIT */
/* fakename.c: made-up names. See fakename.h. */
#include "collect/transform/fakename.h"

#include "analyze/base/arena.h"
#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <stdio.h>
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

static void fakenames_undo(void *what) {
    struct fakenames *fakenames = what;
    EVP_MAC_CTX_free(fakenames->hash);
    numbermap_free(&fakenames->known);
    arena_free(&fakenames->memory);
}

struct fakenames *fakenames_new(const void *key, size_t key_size) {
    struct fakenames *fakenames = job_alloc(sizeof *fakenames);
    char digest[] = "SHA256";
    const OSSL_PARAM settings[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};
    EVP_MAC *kind;
    job_undo(fakenames_undo, fakenames);
    if (key_size != 0) {
        kind = EVP_MAC_fetch(NULL, "HMAC", NULL);
        fakenames->hash = kind != NULL ? EVP_MAC_CTX_new(kind) : NULL;
        EVP_MAC_free(kind); /* which lives as long as what it is needed for */
        if (fakenames->hash == NULL ||
            EVP_MAC_init(fakenames->hash, key, key_size, settings) != 1) {
            job_fail_memory();
        }
    }
    return fakenames;
}

/* DIGEST_BYTES that tell the name to nobody without the key. */
static void fakename_hash(struct fakenames *fakenames, enum fakename_kind kind, const void *name,
                          size_t size, uint8_t *digest) {
    size_t got;
    if (EVP_MAC_init(fakenames->hash, NULL, 0, NULL) != 1 ||
        EVP_MAC_update(fakenames->hash, (const uint8_t *)prefixes[kind],
                       strlen(prefixes[kind]) + 1) != 1 ||
        EVP_MAC_update(fakenames->hash, name, size) != 1 ||
        EVP_MAC_final(fakenames->hash, digest, &got, DIGEST_BYTES) != 1) {
        job_fail_memory();
    }
}

static void fakename_make(struct fakenames *fakenames, struct known *known) {
    const char *prefix = prefixes[known->kind];
    uint8_t digest[DIGEST_BYTES];
    int used;
    if (fakenames->hash == NULL) {
        snprintf(known->fakename, sizeof known->fakename, "%s_%" PRIu64, prefix, known->number);
        return;
    }
    fakename_hash(fakenames, known->kind, known->name, known->size, digest);
    used = snprintf(known->fakename, sizeof known->fakename, "%s_", prefix);
    for (size_t i = 0; i < HASH_BYTES; i++) {
        used += snprintf(known->fakename + used, sizeof known->fakename - (size_t)used, "%02x",
                         digest[i]);
    }
}

static const struct known *fakename_find(struct fakenames *fakenames, enum fakename_kind kind,
                                         const void *name, size_t size) {
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
        job_fail_memory();
    }
    *known = (struct known){.kind = kind, .size = size, .number = ++fakenames->counts[kind]};
    memcpy(known->name, name, size);
    fakename_make(fakenames, known);
    return known;
}

const char *fakename_of(struct fakenames *fakenames, enum fakename_kind kind, const char *name,
                        size_t size) {
    return size != 0 ? fakename_find(fakenames, kind, name, size)->fakename : "";
}

void fakename_bytes(struct fakenames *fakenames, enum fakename_kind kind, uint8_t *bytes,
                    size_t size) {
    uint8_t digest[DIGEST_BYTES] = {0};
    const struct known *known = size != 0 ? fakename_find(fakenames, kind, bytes, size) : NULL;
    if (known != NULL && fakenames->hash != NULL) {
        fakename_hash(fakenames, kind, known->name, size, digest);
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = digest[i % sizeof digest];
    }
    /* The number at the end, most significant byte first. */
    for (size_t i = 0; fakenames->hash == NULL && i < size && i < sizeof known->number; i++) {
        bytes[size - 1 - i] = (uint8_t)(known->number >> (8 * i));
    }
}
