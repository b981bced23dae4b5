/* SPDX-License-Identifier: MIT */
/*
 * texts.h: the texts of a recording's marks, each kept once. A text that was handed out stays where
 * it is until texts_free(). Programs have few different ones; beyond TEXTS_BYTES they come out
 * empty.
 *
 * Called by analyze/replay/timeorder, which reads them, and whoever keeps marks. Belongs to one
 * thread; what was handed out any thread may read. Start from {0}.
 */
#ifndef ANALYZE_MODEL_TEXTS_H
#define ANALYZE_MODEL_TEXTS_H

#include <stddef.h>
#include <stdint.h>

enum { TEXTS_BYTES = 4 << 20 };

struct texts {
    char *bytes; /* of TEXTS_BYTES; only what is used is touched */
    size_t used;
    uint32_t *places; /* a hash table of offsets in bytes, plus one; 0: empty */
    size_t capacity;  /* a power of two, at least twice the count */
    size_t count;
};

void texts_free(struct texts *texts);

/* The text as a string, ended at its first NUL. "": it is empty, or there is no room. */
const char *texts_keep(struct texts *texts, const char *text, size_t size);

#endif
