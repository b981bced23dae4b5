/* SPDX-License-Identifier: MIT */
/* apicache.c: see apicache.h. */
#include "web/server/apicache.h"

#include "analyze/base/job.h"
#include "analyze/base/timedwait.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 20 };

struct kept {
    struct kept *next;
    const struct apicache_kind *kind;
    void *value; /* NULL: somebody makes it */
    struct job_memory *memory;
    size_t bytes;
    char key[];
};

struct apicache {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct kept *first;
};

static void apicache_end(void *what) {
    struct apicache *cache = what;
    while (cache->first != NULL) {
        struct kept *kept = cache->first;
        cache->first = kept->next;
        job_free(&kept->memory);
        free(kept);
    }
    pthread_cond_destroy(&cache->changed);
    pthread_mutex_destroy(&cache->lock);
}

struct apicache *apicache_begin(void) {
    struct apicache *cache = job_alloc(sizeof *cache);
    pthread_mutex_init(&cache->lock, NULL);
    timedwait_init(&cache->changed);
    job_undo(apicache_end, cache);
    return cache;
}

static struct kept *apicache_find(const struct apicache *cache, const char *key,
                                  const struct apicache_kind *kind) {
    struct kept *kept = cache->first;
    while (kept != NULL && (kept->kind != kind || strcmp(kept->key, key) != 0)) {
        kept = kept->next;
    }
    return kept;
}

struct making {
    const struct apicache_kind *kind;
    const void *wish;
    const struct replay_options *replay;
    void *value;
};

static void apicache_work(void *what) {
    struct making *making = what;
    making->value = making->kind->make(making->wish, making->replay);
}

/* Without the lock while it is made. */
static const void *apicache_make(struct apicache *cache, const char *key,
                                 const struct apicache_kind *kind, const void *wish,
                                 const struct replay_options *replay, struct error *error) {
    struct kept *kept = calloc(1, sizeof *kept + strlen(key) + 1);
    struct making making = {kind, wish, replay, NULL};
    void *value;
    if (kept == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    strcpy(kept->key, key);
    kept->kind = kind;
    kept->next = cache->first;
    cache->first = kept;
    pthread_mutex_unlock(&cache->lock);
    value = job_run(apicache_work, &making, &kept->memory, error) == 0 ? making.value : NULL;
    pthread_mutex_lock(&cache->lock);
    kept->value = value;
    kept->bytes = value != NULL ? kind->bytes(value) : 0;
    if (value == NULL) {
        struct kept **at = &cache->first;
        while (*at != kept) {
            at = &(*at)->next;
        }
        *at = kept->next;
        free(kept);
    }
    pthread_cond_broadcast(&cache->changed);
    return value;
}

const void *apicache_get(struct api_call *call, const struct answer *view, const char *key,
                         const struct apicache_kind *kind, const void *wish) {
    struct apicache *cache = view->cache;
    const struct kept *kept;
    const void *value;
    struct error error = {"cancelled"};
    pthread_mutex_lock(&cache->lock);
    while ((kept = apicache_find(cache, key, kind)) != NULL && kept->value == NULL &&
           !replay_is_cancelled(&call->replay)) {
        struct timespec until = timedwait_until(LOOK_MS);
        pthread_cond_timedwait(&cache->changed, &cache->lock, &until);
    }
    if (kind->via != API_VIA_MODEL) {
        call->told.via = kept != NULL ? API_VIA_CACHE : kind->via;
    }
    value =
        kept == NULL ? apicache_make(cache, key, kind, wish, &call->replay, &error) : kept->value;
    pthread_mutex_unlock(&cache->lock);
    if (value == NULL) {
        job_fail_as(&error);
    }
    return value;
}

size_t apicache_bytes(struct apicache *cache) {
    size_t bytes = 0;
    pthread_mutex_lock(&cache->lock);
    for (const struct kept *kept = cache->first; kept != NULL; kept = kept->next) {
        bytes += kept->bytes;
    }
    pthread_mutex_unlock(&cache->lock);
    return bytes;
}
