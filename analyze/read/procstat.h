/* SPDX-License-Identifier: MIT */
/*
 * procstat.h: /proc/PID/stat and /proc/PID/task/TID/stat (proc(5)).
 *
 * Called by analyze/read/region and collect/attach. Any thread; only reads.
 */
#ifndef ANALYZE_READ_PROCSTAT_H
#define ANALYZE_READ_PROCSTAT_H

#include <stddef.h>

enum { PROCSTAT_BYTES = 1024 };

/* Its fields from the third on, in `text`, each behind a space: the name before them may hold
 * anything. NULL: errno; ESRCH: it is gone. */
const char *procstat_read(const char *path, char text[PROCSTAT_BYTES]);

#endif
