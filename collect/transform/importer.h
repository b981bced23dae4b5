/* SPDX-License-Identifier: MIT */
/*
 * importer.h: a recording (memtrace/recording.h) made of another tool's file: of heaptrack's.
 *
 * Called by cli/import. A job of its own; memory grows with call paths, names and live blocks, not
 * with events.
 *
 * Blocks begin and end as that file says, all in one thread, as it knows none, at the times it
 * tells. Names come with the recording; where the file has modules in their place (raw files), they
 * are found in these.
 */
#ifndef COLLECT_TRANSFORM_IMPORTER_H
#define COLLECT_TRANSFORM_IMPORTER_H

#include "analyze/import/heaptrackfile.h"

struct importer_result {
    struct heaptrackfile_result file;
    uint64_t begins;
    uint64_t ends;
    uint64_t missing_paths; /* more call paths than a recording holds; charged to their callers */
};

/* Makes the file at `to`; where it fails there may be half a file. progress may be NULL. 0 or -1.
 */
int importer_run(const char *from, const char *to,
                 void (*progress)(void *context, uint64_t done, uint64_t total),
                 struct importer_result *result, struct error *error);

#endif
