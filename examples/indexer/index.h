/* SPDX-License-Identifier: MIT */
/* index.h: an inverted index: for every word, the documents it stands in. */
#ifndef INDEXER_INDEX_H
#define INDEXER_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct posting {
    char *word;
    uint32_t *documents; /* rising */
    size_t count, room;
};

struct answer {
    size_t count;
    uint32_t documents[];
};

enum { INDEX_PLACES = 1 << 16, INDEX_CACHE = 512 };

struct index {
    struct posting *places[INDEX_PLACES];
    struct answer *cache[INDEX_CACHE];
    size_t words;
};

void index_add(struct index *index, const char *word, uint32_t document);

/* The documents that hold both words; the answer belongs to the index. */
const struct answer *index_search(struct index *index, const char *left, const char *right);

void index_free(struct index *index);

#endif
