/* SPDX-License-Identifier: MIT */
/* chains.c: kept lives by the order of their chain's first birth, which names it. See chains.h. */
#include "analyze/replay/chains.h"

#include "analyze/base/array.h"
#include "analyze/base/numbermap.h"

#include <stdlib.h>

struct chain {
    struct life *lives;
    size_t count;
    size_t room;
};

struct chains {
    struct numbermap by_order;
};

struct chains *chains_new(void) {
    return calloc(1, sizeof(struct chains));
}

static void free_chain(struct chain *chain) {
    free(chain->lives);
    free(chain);
}

void chains_free(struct chains *chains) {
    if (chains == NULL) {
        return;
    }
    for (size_t i = 0; i < chains->by_order.places; i++) {
        if (chains->by_order.entries[i].value != NULL) {
            free_chain(chains->by_order.entries[i].value);
        }
    }
    numbermap_free(&chains->by_order);
    free(chains);
}

/* NULL: out of memory. */
static struct chain *new_chain(struct chains *chains, uint64_t order) {
    struct chain *chain = calloc(1, sizeof *chain);
    if (chain != NULL && numbermap_put(&chains->by_order, order, chain) != 0) {
        free(chain);
        return NULL;
    }
    return chain;
}

int chains_keep(struct chains *chains, const struct life *life) {
    struct chain *chain = numbermap_get(&chains->by_order, life->chain_order);
    if (chain == NULL) {
        chain = new_chain(chains, life->chain_order);
    }
    if (chain == NULL || array_grow(&chain->lives, &chain->room, chain->count, sizeof *life) != 0) {
        return -1;
    }
    chain->lives[chain->count++] = *life;
    return 0;
}

struct life *chains_take(struct chains *chains, const struct life *life, size_t *count) {
    struct chain *chain = numbermap_take(&chains->by_order, life->chain_order);
    struct life *lives = chain != NULL ? chain->lives : NULL;
    *count = chain != NULL ? chain->count : 0;
    free(chain);
    return lives;
}
