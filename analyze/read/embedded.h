/* SPDX-License-Identifier: MIT */
/*
 * embedded.h: the program files in a recording, or the symbols of them, brought back to disk.
 *
 * Called by cli (extract, report). What a recording says of paths is not trusted: nothing is
 * written outside of the folder.
 */
#ifndef ANALYZE_READ_EMBEDDED_H
#define ANALYZE_READ_EMBEDDED_H

#include "analyze/read/recording.h"

struct embedded {
    uint32_t what; /* enum memtrace_embedded_what */
    uint64_t size;
    uint8_t build_id[32];
    uint32_t build_id_size; /* at most 32; 0: it has none, and is known by its path */
    char path[1024];        /* on the machine of the recording */
};

/* All files, in their order; the caller frees *list. 0 or -1. */
int embedded_list(const struct recording *recording, struct embedded **list, size_t *count,
                  struct error *error);

/* Writes all files below the folder, which is made: FOLDER/.build-id/XX/REST.debug, where debuggers
 * look for it if FOLDER is one of their debug folders; those without a build-id
 * FOLDER/.no-build-id/PATH.debug; whole files FOLDER/PATH as well. *count: how
 * many. Nothing is written where all are larger than bytes_most; 0: than those of a recording of
 * this size can be. 0, -1, or RECORDING_NO_MEMORY. */
int embedded_extract(const struct recording *recording, const char *folder, uint64_t bytes_most,
                     size_t *count, struct error *error);

#endif
