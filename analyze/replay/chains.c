/* SPDX-License-Identifier: MIT */
/* chains.c: a hash table from a chain to its kept lives. See chains.h. */
#include "analyze/replay/chains.h"

#include <stdlib.h>
#include <string.h>

struct chain {
    uint64_t order; /* of its first birth, which names it; 0: an empty place */
    struct life *lives;
    size_t count;
};

/* Open addressing; at most half of the places are taken. */
struct chains {
    struct chain *places;
    size_t capacity; /* a power of two */
    size_t used;
};

enum { FIRST_CAPACITY = 64 };

struct chains *chains_new(void) {
    struct chains *chains = calloc(1, sizeof *chains);
    if (chains != NULL) {
        chains->capacity = FIRST_CAPACITY;
        chains->places = calloc(FIRST_CAPACITY, sizeof *chains->places);
    }
    if (chains != NULL && chains->places == NULL) {
        free(chains);
        return NULL;
    }
    return chains;
}

void chains_free(struct chains *chains) {
    if (chains == NULL) {
        return;
    }
    for (size_t i = 0; i < chains->capacity; i++) {
        free(chains->places[i].lives);
    }
    free(chains->places);
    free(chains);
}

static size_t home(const struct chains *chains, uint64_t order) {
    return (size_t)(order * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (chains->capacity - 1);
}

/* Where this chain is, or the empty place where it belongs. */
static size_t find(const struct chains *chains, uint64_t order) {
    size_t at = home(chains, order);
    while (chains->places[at].order != 0 && chains->places[at].order != order) {
        at = (at + 1) & (chains->capacity - 1);
    }
    return at;
}

static int grow(struct chains *chains) {
    struct chains larger = {.capacity = chains->capacity * 2, .used = chains->used};
    larger.places = calloc(larger.capacity, sizeof *larger.places);
    if (larger.places == NULL) {
        return -1;
    }
    for (size_t i = 0; i < chains->capacity; i++) {
        if (chains->places[i].order != 0) {
            larger.places[find(&larger, chains->places[i].order)] = chains->places[i];
        }
    }
    free(chains->places);
    *chains = larger;
    return 0;
}

/* Grown by doubling: there is room up to the next power of two. */
static int append(struct chain *chain, const struct life *life) {
    if ((chain->count & (chain->count - 1)) == 0) {
        size_t capacity = chain->count != 0 ? chain->count * 2 : 1;
        struct life *grown = reallocarray(chain->lives, capacity, sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        chain->lives = grown;
    }
    chain->lives[chain->count++] = *life;
    return 0;
}

int chains_keep(struct chains *chains, const struct life *life) {
    struct chain *chain;
    if (chains->used * 2 >= chains->capacity && grow(chains) != 0) {
        return -1;
    }
    chain = &chains->places[find(chains, life->chain_order)];
    chains->used += chain->order == 0;
    chain->order = life->chain_order;
    return append(chain, life);
}

/* Empties a place: those behind it that would no longer be found move up. */
static void remove_at(struct chains *chains, size_t hole) {
    size_t mask = chains->capacity - 1;
    size_t at = hole;
    for (;;) {
        at = (at + 1) & mask;
        if (chains->places[at].order == 0) {
            break;
        }
        if (((at - home(chains, chains->places[at].order)) & mask) >= ((at - hole) & mask)) {
            chains->places[hole] = chains->places[at];
            hole = at;
        }
    }
    chains->places[hole] = (struct chain){0};
    chains->used--;
}

struct life *chains_take(struct chains *chains, const struct life *life, size_t *count) {
    size_t at = find(chains, life->chain_order);
    struct life *lives = chains->places[at].lives;
    *count = chains->places[at].count;
    if (chains->places[at].order != 0) {
        remove_at(chains, at);
    }
    return lives;
}
