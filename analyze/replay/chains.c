/* SPDX-License-Identifier: MIT */
/* chains.c: kept lives by the order of their chain's first birth, which names it. See chains.h. */
#include "analyze/replay/chains.h"

#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"

struct chain {
    struct life *lives;
    size_t count;
    size_t room;
};

struct chains {
    struct numbermap by_order;
};

struct chains *chains_new(void) {
    return job_alloc(sizeof(struct chains));
}

void chains_free(struct chains *chains) {
    for (size_t i = 0; chains != NULL && i < chains->by_order.places; i++) {
        struct chain *chain = chains->by_order.entries[i].value;
        if (chain != NULL) {
            job_release(chain->lives);
            job_release(chain);
        }
    }
    if (chains != NULL) {
        job_release(chains->by_order.entries);
    }
}

void chains_keep(struct chains *chains, const struct life *life) {
    struct chain *chain = numbermap_get(&chains->by_order, life->chain_order);
    if (chain == NULL) {
        chain = job_array(1, sizeof *chain);
        numbermap_set(&chains->by_order, life->chain_order, chain);
    }
    job_grow(&chain->lives, &chain->room, chain->count, sizeof *life);
    chain->lives[chain->count++] = *life;
}

struct life *chains_take(struct chains *chains, const struct life *life, size_t *count) {
    struct chain *chain = numbermap_take(&chains->by_order, life->chain_order);
    struct life *lives = chain != NULL ? chain->lives : NULL;
    *count = chain != NULL ? chain->count : 0;
    job_release(chain);
    return lives;
}
