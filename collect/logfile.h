/* SPDX-License-Identifier: MIT */
/*
 * logfile.h: where the periodic report goes: stderr, or a file that is begun anew when it has grown
 * enough; what it held is then FILE.1.
 *
 * Called by collect/collector.
 */
#ifndef COLLECT_LOGFILE_H
#define COLLECT_LOGFILE_H

#include <stddef.h>
#include <stdint.h>

struct logfile {
    char path[4096];     /* "": stderr */
    uint64_t most_bytes; /* 0: it grows */
    int fd;              /* -1: not opened yet; STDERR_FILENO: instead of a file */
};

/* Opens nothing yet. */
void logfile_start(struct logfile *log, const char *path, uint64_t most_bytes);
/* Where a text of so many bytes goes. Where the file cannot be opened one line says so, and all
 * goes to stderr from then on. */
int logfile_descriptor(struct logfile *log, size_t size);
void logfile_end(struct logfile *log);

#endif
