/* SPDX-License-Identifier: MIT */
/*
 * formats.h: the list of formats that an export knows, with what each one holds.
 *
 * Called by cli/export and web/server.
 */
#ifndef ANALYZE_EXPORT_FORMATS_H
#define ANALYZE_EXPORT_FORMATS_H

#include "analyze/export/export.h"

enum exportformat_trait {
    EXPORTFORMAT_COST = 1,   /* holds one cost, or shows one first */
    EXPORTFORMAT_BINARY = 2, /* nothing for terminals */
    EXPORTFORMAT_FILE = 4,   /* no stream: needs a file with a name */
    EXPORTFORMAT_DEPTH = 8,  /* writes each call path whole: a depth bounds it */
    EXPORTFORMAT_SUMS = 16,  /* of the heap, or of pools or mappings in its place */
    EXPORTFORMAT_HEAP = 32   /* of the heap alone */
};

struct exportformat {
    const char *name;
    const char *ending; /* of files that have this format */
    const char *help;
    /* NULL: the page with its data, which web/server/onefile.h writes. */
    int (*write)(const struct export *export, struct error *error);
    unsigned traits; /* enum exportformat_trait */
};

/* The one that a NULL name ends. */
extern const struct exportformat exportformats[];

/* NULL: there is none of that name. */
const struct exportformat *exportformat_named(const char *name);
/* Where filters ask for pools or mappings, and the format has no place of theirs: export->model
 * becomes *heap, in which they stand for the heap. *heap is set in any case, and to be freed by
 * selection_as_heap_free(). 0, or -1: the format has the heap alone, or out of memory. */
int exportformat_choose(const struct exportformat *format, const struct selection *selection,
                        struct export *export, struct model *heap, struct error *error);
/* The one with the longest ending that the file's name has. NULL: none. */
const struct exportformat *exportformat_of_file(const char *path);

#endif
