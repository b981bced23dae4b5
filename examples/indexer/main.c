/* SPDX-License-Identifier: MIT */
/* main.c: indexes made-up documents and answers queries on the way: indexer [DOCUMENTS] */
#include "corpus.h"
#include "index.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORDS_PER_DOCUMENT = 80, QUERIES = 20 };

static void add_document(struct index *index, struct corpus *text, uint32_t document) {
    for (int i = 0; i < WORDS_PER_DOCUMENT; i++) {
        char *word = corpus_next_word(text);
        index_add(index, word, document);
        free(word);
    }
}

static size_t answer_queries(struct index *index, struct corpus *queries) {
    size_t hits = 0;
    for (int i = 0; i < QUERIES; i++) {
        char *left = corpus_next_word(queries), *right = corpus_next_word(queries);
        hits += index_search(index, left, right)->count;
        free(left);
        free(right);
    }
    return hits;
}

int main(int argc, char **argv) {
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 250000;
    struct corpus text = {1}, queries = {2};
    struct index *index = calloc(1, sizeof *index);
    size_t hits = 0;
    for (uint32_t document = 0; document < count; document++) {
        add_document(index, &text, document);
        if (document % 100 == 99) {
            hits += answer_queries(index, &queries);
        }
    }
    printf("%u documents, %zu words, %zu hits\n", count, index->words, hits);
    index_free(index);
    return 0;
}
