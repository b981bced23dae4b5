/* SPDX-License-Identifier: MIT */
/*
 * suppressing.h: the options that say which leaks not to tell: --suppressions FILE (again and
 * again), --no-builtin-suppressions, --no-embedded-suppressions.
 *
 * A command has suppressing_options as a part of its table, hands keys from SUPPRESSING_KEYS to
 * SUPPRESSING_LAST to suppressing_take(), and calls suppressing_load() when the file is open.
 */
#ifndef ANALYZE_ASK_SUPPRESSING_H
#define ANALYZE_ASK_SUPPRESSING_H

#include "analyze/ask/option.h"
#include "analyze/filter/suppressions.h"
#include "analyze/model/model.h"

enum {
    SUPPRESSING_KEYS = 900,
    SUPPRESSING_FILE = SUPPRESSING_KEYS,
    SUPPRESSING_NO_BUILTIN,
    SUPPRESSING_NO_EMBEDDED,
    SUPPRESSING_LAST = SUPPRESSING_NO_EMBEDDED,
    SUPPRESSING_FILES = 64
};

extern const struct option suppressing_options[];

/* Start from {0}. */
struct suppressing {
    const char *files[SUPPRESSING_FILES];
    size_t count;
    bool no_builtin;
    bool no_embedded;
};

/* Adds an option with its value, which must live as long. 0, or -1: error says what is wrong. */
int suppressing_take(struct suppressing *suppressing, const struct option *option,
                     const char *value, struct error *error);

/* Files first, then the program's own, then the built-in list. The caller frees the list in any
 * case. 0 or -1. */
int suppressing_load(const struct suppressing *suppressing, const struct model *model,
                     const char *debug_folders, struct suppressions *list, struct error *error);

#endif
