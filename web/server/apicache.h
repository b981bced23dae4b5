/* SPDX-License-Identifier: MIT */
/*
 * apicache.h: what passes over a view gathered, kept as long as the view, so that nobody waits for
 * the same pass twice. Who asks while somebody else makes it, waits for that.
 *
 * Called by endpoints. Any thread.
 */
#ifndef WEB_SERVER_APICACHE_H
#define WEB_SERVER_APICACHE_H

#include "web/server/api.h"

struct apicache;

/* How a value is made, and how many bytes it takes (for the limit of --cache-memory). It is made in
 * a job of its own (analyze/base/job.h), whose memory is kept with it. */
struct apicache_kind {
    void *(*make)(const void *wish, const struct replay_options *replay);
    size_t (*bytes)(const void *value);
    enum api_via via; /* by what it is made, if that is to be told */
};

/* Of the job. */
struct apicache *apicache_begin(void);

/* The value under this key of a view of the call, made if it is not there; it lives as long as the
 * view does. Whose maker was cancelled, is made by who waits. What cannot be made ends the job of
 * who asks. Of what has a `via` it is told whether that was needed. */
const void *apicache_get(struct api_call *call, const struct answer *view, const char *key,
                         const struct apicache_kind *kind, const void *wish);
size_t apicache_bytes(struct apicache *cache);

#endif
