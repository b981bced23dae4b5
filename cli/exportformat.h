/* SPDX-License-Identifier: MIT */
/* exportformat.h: the formats of `memtrace export`, one row each. Used by cli/export.c. */
#ifndef CLI_EXPORTFORMAT_H
#define CLI_EXPORTFORMAT_H

#include "analyze/export/export.h"

enum exportformat_trait {
    EXPORTFORMAT_COST = 1,   /* holds one cost, or shows one first: --cost chooses */
    EXPORTFORMAT_BINARY = 2, /* nothing for terminals */
    EXPORTFORMAT_FILE = 4,   /* no stream: needs --output */
    EXPORTFORMAT_DEPTH = 8   /* writes each call path whole: --depth bounds it */
};

struct exportformat {
    const char *name;
    const char *ending; /* of files: --output with it needs no --format */
    const char *help;
    int (*write)(const struct export *export, struct error *error);
    unsigned traits; /* enum exportformat_trait */
};

extern const struct exportformat exportformats[];
extern const size_t exportformat_count;

/* NULL: there is none of that name. */
const struct exportformat *exportformat_named(const char *name);

/* The one with the longest ending that the file's name has. NULL: none. */
const struct exportformat *exportformat_of_file(const char *path);

#endif
