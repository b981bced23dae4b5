/* SPDX-License-Identifier: MIT */
/*
 * pseudonym.h: made-up names in the place of real ones, the same for the same name.
 *
 * Called by collect/anonymize. One thread. Without a key names are numbered as they come
 * ("function_1"), which tells nothing of them at all. With one they are a keyed hash (HMAC with
 * SHA-256): the same in each file that is made with this key, and nobody without it can try out
 * what a name was.
 */
#ifndef COLLECT_PSEUDONYM_H
#define COLLECT_PSEUDONYM_H

#include <stddef.h>
#include <stdint.h>

enum pseudonym_kind {
    PSEUDONYM_FUNCTION,
    PSEUDONYM_FILE, /* of sources */
    PSEUDONYM_MODULE,
    PSEUDONYM_PATH, /* of other files */
    PSEUDONYM_ARGUMENT,
    PSEUDONYM_THREAD,
    PSEUDONYM_POOL,
    PSEUDONYM_MARK, /* and scopes */
    PSEUDONYM_MAPPING,
    PSEUDONYM_BUILD_ID,
    PSEUDONYM_KINDS
};

enum { PSEUDONYM_MOST = 32 }; /* bytes of one, NUL included */

struct pseudonyms;

/* key_size 0: none. NULL: out of memory. */
struct pseudonyms *pseudonyms_new(const void *key, size_t key_size);
void pseudonyms_free(struct pseudonyms *pseudonyms); /* NULL is allowed */

/* The name that stands for this one, which lives as long as the pseudonyms; size bytes, which need
 * no NUL. An empty one stays empty. NULL: out of memory. */
const char *pseudonym_of(struct pseudonyms *pseudonyms, enum pseudonym_kind kind, const char *name,
                         size_t size);

/* Replaces bytes that name something (a build-id), as many as there are. 0 or -1. */
int pseudonym_bytes(struct pseudonyms *pseudonyms, enum pseudonym_kind kind, uint8_t *bytes,
                    size_t size);

#endif
