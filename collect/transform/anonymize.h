/* SPDX-License-Identifier: MIT */
/*
 * anonymize.h: hides what a recording that is rewritten says in words: fakenames stand for
 * functions, files, modules, threads, pools, marks, paths and the command line; build-ids, the user
 * and the process are hidden, too. Program files go. Numbers and structure stay.
 *
 * Called by cli/anonymize. One thread, in a job.
 */
#ifndef COLLECT_TRANSFORM_ANONYMIZE_H
#define COLLECT_TRANSFORM_ANONYMIZE_H

#include "analyze/model/model.h"
#include "analyze/model/names.h"
#include "collect/transform/transform.h"

#include <stddef.h>
#include <stdint.h>

/* ---- Made-up names ---- */

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

/* ---- A recording ---- */

struct anonymize {
    const struct model *model; /* the recording's */
    const struct names *names; /* and its names */
    struct fakenames *fakenames;
};

/* For transform_run(); all must outlive it. */
struct transform_step anonymize_step(struct anonymize *anonymize);

#endif
