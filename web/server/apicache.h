/* SPDX-License-Identifier: MIT */
/*
 * apicache.h: what passes over a view gathered, kept as long as the view, so that nobody waits for
 * the same pass twice. Who asks while somebody else makes it, waits for that.
 *
 * Called by endpoints. Any thread.
 */
#ifndef WEB_SERVER_APICACHE_H
#define WEB_SERVER_APICACHE_H

#include "analyze/base/error.h"
#include "analyze/replay/options.h"

#include <stdbool.h>
#include <stddef.h>

struct apicache;

/* How a value is made, and how many bytes it takes (for the limit of --cache-memory). It is made in
 * a job of its own (analyze/base/job.h), whose memory is kept with it. */
struct apicache_kind {
    void *(*make)(const void *wish, const struct replay_options *replay);
    size_t (*bytes)(const void *value);
};

struct apicache *apicache_new(void); /* NULL: out of memory */
void apicache_free(struct apicache *cache);

/* The value under this key, made if it is not there; it lives as long as the view does. *was_there
 * (NULL is allowed): nothing had to be done. Whose maker was cancelled, is made by who waits.
 * What cannot be made ends the job of who asks. */
const void *apicache_get(struct apicache *cache, const char *key, const struct apicache_kind *kind,
                         const void *wish, const struct replay_options *replay, bool *was_there);
size_t apicache_bytes(struct apicache *cache);

#endif
