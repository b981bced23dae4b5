/* SPDX-License-Identifier: MIT */
/* pseudonym.c: made-up names. See pseudonym.h. */
#include "collect/pseudonym.h"

#include "analyze/base/numbermap.h"
#include "analyze/symbol/chunks.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <nettle/hmac.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { HASH_BYTES = 6 }; /* of a keyed name: a million names have one in 500 chance of a repeat */

static const char *const prefixes[PSEUDONYM_KINDS] = {
    "function", "file", "module", "path", "argument", "thread", "pool", "mark", "mapping", "build"};

/* A name that was met. */
struct known {
    enum pseudonym_kind kind;
    size_t size;
    uint64_t number; /* of its kind, from 1 on */
    char pseudonym[PSEUDONYM_MOST];
    char name[];
};

struct pseudonyms {
    bool keyed;
    struct hmac_sha256_ctx hash;
    struct numbermap known; /* by hash of kind and name */
    uint64_t counts[PSEUDONYM_KINDS];
    struct chunks memory;
};

struct pseudonyms *pseudonyms_new(const void *key, size_t key_size) {
    struct pseudonyms *pseudonyms = calloc(1, sizeof *pseudonyms);
    if (pseudonyms != NULL && key_size != 0) {
        pseudonyms->keyed = true;
        hmac_sha256_set_key(&pseudonyms->hash, key_size, key);
    }
    return pseudonyms;
}

void pseudonyms_free(struct pseudonyms *pseudonyms) {
    if (pseudonyms != NULL) {
        numbermap_free(&pseudonyms->known);
        chunks_free(&pseudonyms->memory);
        free(pseudonyms);
    }
}

/* SHA256_DIGEST_SIZE bytes that tell the name to nobody without the key. */
static void hash_name(struct pseudonyms *pseudonyms, enum pseudonym_kind kind, const void *name,
                      size_t size, uint8_t *digest) {
    hmac_sha256_update(&pseudonyms->hash, strlen(prefixes[kind]) + 1,
                       (const uint8_t *)prefixes[kind]);
    hmac_sha256_update(&pseudonyms->hash, size, name);
    hmac_sha256_digest(&pseudonyms->hash, SHA256_DIGEST_SIZE, digest);
}

static void make_name(struct pseudonyms *pseudonyms, struct known *known) {
    const char *prefix = prefixes[known->kind];
    uint8_t digest[SHA256_DIGEST_SIZE];
    int used;
    if (!pseudonyms->keyed) {
        snprintf(known->pseudonym, sizeof known->pseudonym, "%s_%" PRIu64, prefix, known->number);
        return;
    }
    hash_name(pseudonyms, known->kind, known->name, known->size, digest);
    used = snprintf(known->pseudonym, sizeof known->pseudonym, "%s_", prefix);
    for (size_t i = 0; i < HASH_BYTES; i++) {
        used += snprintf(known->pseudonym + used, sizeof known->pseudonym - (size_t)used, "%02x",
                         digest[i]);
    }
}

/* NULL: out of memory. */
static struct known *find(struct pseudonyms *pseudonyms, enum pseudonym_kind kind, const void *name,
                          size_t size) {
    uint64_t hash = XXH3_64bits_withSeed(name, size, kind);
    struct known *known;
    while ((known = numbermap_get(&pseudonyms->known, hash)) != NULL) {
        if (known->kind == kind && known->size == size && memcmp(known->name, name, size) == 0) {
            return known;
        }
        hash++;
    }
    known = chunks_alloc(&pseudonyms->memory, sizeof *known + size);
    if (known == NULL || numbermap_put(&pseudonyms->known, hash, known) != 0) {
        return NULL;
    }
    *known = (struct known){.kind = kind, .size = size, .number = ++pseudonyms->counts[kind]};
    memcpy(known->name, name, size);
    make_name(pseudonyms, known);
    return known;
}

const char *pseudonym_of(struct pseudonyms *pseudonyms, enum pseudonym_kind kind, const char *name,
                         size_t size) {
    const struct known *known = size != 0 ? find(pseudonyms, kind, name, size) : NULL;
    return size == 0 ? "" : known != NULL ? known->pseudonym : NULL;
}

int pseudonym_bytes(struct pseudonyms *pseudonyms, enum pseudonym_kind kind, uint8_t *bytes,
                    size_t size) {
    uint8_t digest[SHA256_DIGEST_SIZE] = {0};
    const struct known *known = size != 0 ? find(pseudonyms, kind, bytes, size) : NULL;
    if (known == NULL) {
        return size == 0 ? 0 : -1;
    }
    if (pseudonyms->keyed) {
        hash_name(pseudonyms, kind, known->name, size, digest);
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = digest[i % sizeof digest];
    }
    /* The number at the end, most significant byte first. */
    for (size_t i = 0; !pseudonyms->keyed && i < size && i < sizeof known->number; i++) {
        bytes[size - 1 - i] = (uint8_t)(known->number >> (8 * i));
    }
    return 0;
}
