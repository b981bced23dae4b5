/* SPDX-License-Identifier: MIT */
/* fakename.c: made-up names. See fakename.h. */
#include "collect/transform/fakename.h"

#include "analyze/base/arena.h"
#include "analyze/base/numbermap.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <nettle/hmac.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

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
    bool keyed;
    struct hmac_sha256_ctx hash;
    struct numbermap known; /* by hash of kind and name */
    uint64_t counts[FAKENAME_KINDS];
    struct arena memory;
};

struct fakenames *fakenames_new(const void *key, size_t key_size) {
    struct fakenames *fakenames = calloc(1, sizeof *fakenames);
    if (fakenames != NULL && key_size != 0) {
        fakenames->keyed = true;
        hmac_sha256_set_key(&fakenames->hash, key_size, key);
    }
    return fakenames;
}

void fakenames_free(struct fakenames *fakenames) {
    if (fakenames != NULL) {
        numbermap_free(&fakenames->known);
        arena_free(&fakenames->memory);
        free(fakenames);
    }
}

/* SHA256_DIGEST_SIZE bytes that tell the name to nobody without the key. */
static void hash_name(struct fakenames *fakenames, enum fakename_kind kind, const void *name,
                      size_t size, uint8_t *digest) {
    hmac_sha256_update(&fakenames->hash, strlen(prefixes[kind]) + 1,
                       (const uint8_t *)prefixes[kind]);
    hmac_sha256_update(&fakenames->hash, size, name);
    hmac_sha256_digest(&fakenames->hash, SHA256_DIGEST_SIZE, digest);
}

static void make_name(struct fakenames *fakenames, struct known *known) {
    const char *prefix = prefixes[known->kind];
    uint8_t digest[SHA256_DIGEST_SIZE];
    int used;
    if (!fakenames->keyed) {
        snprintf(known->fakename, sizeof known->fakename, "%s_%" PRIu64, prefix, known->number);
        return;
    }
    hash_name(fakenames, known->kind, known->name, known->size, digest);
    used = snprintf(known->fakename, sizeof known->fakename, "%s_", prefix);
    for (size_t i = 0; i < HASH_BYTES; i++) {
        used += snprintf(known->fakename + used, sizeof known->fakename - (size_t)used, "%02x",
                         digest[i]);
    }
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
    make_name(fakenames, known);
    return known;
}

const char *fakename_of(struct fakenames *fakenames, enum fakename_kind kind, const char *name,
                        size_t size) {
    const struct known *known = size != 0 ? find(fakenames, kind, name, size) : NULL;
    return size == 0 ? "" : known != NULL ? known->fakename : NULL;
}

int fakename_bytes(struct fakenames *fakenames, enum fakename_kind kind, uint8_t *bytes,
                   size_t size) {
    uint8_t digest[SHA256_DIGEST_SIZE] = {0};
    const struct known *known = size != 0 ? find(fakenames, kind, bytes, size) : NULL;
    if (known == NULL) {
        return size == 0 ? 0 : -1;
    }
    if (fakenames->keyed) {
        hash_name(fakenames, kind, known->name, size, digest);
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = digest[i % sizeof digest];
    }
    /* The number at the end, most significant byte first. */
    for (size_t i = 0; !fakenames->keyed && i < size && i < sizeof known->number; i++) {
        bytes[size - 1 - i] = (uint8_t)(known->number >> (8 * i));
    }
    return 0;
}
