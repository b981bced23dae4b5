/* SPDX-License-Identifier: MIT */
/*
 * export.h: a profile or recording in the formats of other tools. One file of this folder for each
 * format; cli/export.c has the list of them.
 *
 * Called by cli. Everything is written to `out`; whether writing worked the caller asks ferror().
 * Each function returns 0, or -1 with the reason in error: out of memory, or what the format needs
 * and this source has not. Whole bytes are written, never rounded; text from outside is escaped as
 * the format wants it.
 */
#ifndef ANALYZE_EXPORT_EXPORT_H
#define ANALYZE_EXPORT_EXPORT_H

#include "analyze/model/names.h"
#include "analyze/model/timeorder.h"
#include "analyze/report/metric.h"

#include <stdio.h>

struct export {
    FILE *out;
    const struct model *model; /* what was selected */
    const struct names *names;
    struct timeorder_parts parts; /* count 0: the source is a profile */
    enum metric cost;             /* where the format holds one cost */
    bool full_names;              /* C++ names with parameters and template arguments */
    const char *source;           /* the file or the process, as the user named it */
};

int export_folded(const struct export *export, struct error *error);

#endif
