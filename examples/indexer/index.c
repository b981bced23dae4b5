/* SPDX-License-Identifier: MIT */
/* index.c: see index.h. */
#include "index.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_word(const char *word) {
    uint32_t hash = 2166136261u;
    for (; *word != '\0'; word++) {
        hash = (hash ^ (unsigned char)*word) * 16777619u;
    }
    return hash;
}

static struct posting **find_place(struct index *index, const char *word) {
    uint32_t place = hash_word(word) % INDEX_PLACES;
    while (index->places[place] != NULL && strcmp(index->places[place]->word, word) != 0) {
        place = (place + 1) % INDEX_PLACES;
    }
    return &index->places[place];
}

static struct posting *make_posting(const char *word) {
    struct posting *posting = calloc(1, sizeof *posting);
    posting->word = strdup(word);
    return posting;
}

static void append_document(struct posting *posting, uint32_t document) {
    if (posting->count == posting->room) {
        posting->room = posting->room != 0 ? posting->room * 2 : 4;
        posting->documents = realloc(posting->documents, posting->room * sizeof(uint32_t));
    }
    posting->documents[posting->count++] = document;
}

void index_add(struct index *index, const char *word, uint32_t document) {
    struct posting **place = find_place(index, word);
    if (*place == NULL) {
        *place = make_posting(word);
        index->words++;
    }
    if ((*place)->count == 0 || (*place)->documents[(*place)->count - 1] != document) {
        append_document(*place, document);
    }
}

static struct answer *intersect(const struct posting *a, const struct posting *b) {
    struct answer *answer;
    size_t most = a == NULL || b == NULL ? 0 : a->count < b->count ? a->count : b->count;
    size_t i = 0, j = 0;
    answer = malloc(sizeof *answer + most * sizeof(uint32_t));
    answer->count = 0;
    while (most != 0 && i < a->count && j < b->count) {
        if (a->documents[i] < b->documents[j]) {
            i++;
        } else if (a->documents[i] > b->documents[j]) {
            j++;
        } else {
            answer->documents[answer->count++] = a->documents[i];
            i++;
            j++;
        }
    }
    return answer;
}

const struct answer *index_search(struct index *index, const char *left, const char *right) {
    uint32_t place = (hash_word(left) ^ hash_word(right)) % INDEX_CACHE;
    /* The planted leak: the answer that was in this place is forgotten, not freed. */
    index->cache[place] = intersect(*find_place(index, left), *find_place(index, right));
    return index->cache[place];
}

void index_free(struct index *index) {
    for (size_t i = 0; i < INDEX_PLACES; i++) {
        if (index->places[i] != NULL) {
            free(index->places[i]->word);
            free(index->places[i]->documents);
            free(index->places[i]);
        }
    }
    for (size_t i = 0; i < INDEX_CACHE; i++) {
        free(index->cache[i]);
    }
    free(index);
}
