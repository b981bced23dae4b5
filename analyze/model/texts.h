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

#include "analyze/base/numbermap.h"

#include <stddef.h>

enum { TEXTS_BYTES = 4 << 20 };

struct texts {
    char *bytes; /* of TEXTS_BYTES; only what is used is touched */
    size_t used;
    struct numbermap places; /* hash of a text -> it, in bytes */
    size_t count;
};

void texts_free(struct texts *texts);

/* The text as a string, ended at its first NUL. "": it is empty, or there is no room. */
const char *texts_keep(struct texts *texts, const char *text, size_t size);

#endif
