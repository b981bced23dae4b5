/* SPDX-License-Identifier: MIT */
/*
 * fakename.h: made-up names in the place of real ones, the same for the same name.
 *
 * Called by anonymize and its command. One thread, in a job. Without a key names are numbered as
 * they come
 * ("function_1"), which tells nothing of them at all. With one they are a keyed hash (HMAC with
 * SHA-256): the same in each file that is made with this key, and nobody without it can try out
 * what a name was.
 */
#ifndef COLLECT_TRANSFORM_FAKENAME_H
#define COLLECT_TRANSFORM_FAKENAME_H

#include <stddef.h>
#include <stdint.h>

enum fakename_kind {
    FAKENAME_FUNCTION,
    FAKENAME_FILE, /* of sources */
    FAKENAME_MODULE,
    FAKENAME_PATH, /* of other files */
    FAKENAME_ARGUMENT,
    FAKENAME_THREAD,
    FAKENAME_POOL,
    FAKENAME_MARK, /* and scopes */
    FAKENAME_MAPPING,
    FAKENAME_BUILD_ID,
    FAKENAME_KINDS
};

enum { FAKENAME_MOST = 32 }; /* bytes of one, NUL included */

struct fakenames;

/* key_size 0: none. They are the job's. */
struct fakenames *fakenames_new(const void *key, size_t key_size);

/* The name that stands for this one, which lives as long as the fakenames; size bytes, which need
 * no NUL. An empty one stays empty. */
const char *fakename_of(struct fakenames *fakenames, enum fakename_kind kind, const char *name,
                        size_t size);

/* Replaces bytes that name something (a build-id), as many as there are. */
void fakename_bytes(struct fakenames *fakenames, enum fakename_kind kind, uint8_t *bytes,
                    size_t size);

#endif
