/* SPDX-License-Identifier: MIT */
/* corpus.c: see corpus.h. */
#include "corpus.h"

#include <stdlib.h>
#include <string.h>

static const char *const syllables[] = {"ka",  "lor", "mi", "tan", "be", "rus",  "el",  "vo",
                                        "shi", "den", "ga", "pol", "ur", "ness", "qui", "zam"};

static uint32_t next_random(struct corpus *corpus) {
    corpus->state = corpus->state * 1664525u + 1013904223u;
    return corpus->state >> 8;
}

/* The planted temporary: a new string for every word, though the caller only looks at it. */
char *corpus_next_word(struct corpus *corpus) {
    uint32_t spread = next_random(corpus) % CORPUS_WORDS + 1;
    uint32_t number = next_random(corpus) % spread;
    char text[64] = "";
    for (uint32_t rest = number + 256; rest > 0; rest /= 16) {
        strcat(text, syllables[rest % 16]);
    }
    return strdup(text);
}
