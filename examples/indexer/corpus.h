/* SPDX-License-Identifier: MIT */
/* corpus.h: made-up text, the same for the same seed. Few words are common, most are rare. */
#ifndef INDEXER_CORPUS_H
#define INDEXER_CORPUS_H

#include <stdint.h>

struct corpus {
    uint32_t state;
};

enum { CORPUS_WORDS = 20000 };

/* The next word; the caller frees it. */
char *corpus_next_word(struct corpus *corpus);

#endif
