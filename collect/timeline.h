/* SPDX-License-Identifier: MIT */
/*
 * timeline.h: samples of a running program's memory, written into the timeline of its region.
 *
 * Called by collect/collector. While a collector is there the runtime leaves the timeline to it.
 */
#ifndef COLLECT_TIMELINE_H
#define COLLECT_TIMELINE_H

#include "analyze/read/profile.h"

#include <stdint.h>
#include <sys/types.h>

/* Adds a point behind the others. Where no place is left, every second point is dropped first and
 * the interval doubles, so that the points go on covering the whole life. */
void timeline_add(struct memtrace_timeline *timeline, const struct memtrace_point *point);

/* Sums over the program's threads. Allocated and freed are read so that live is never negative. */
void timeline_sum(const struct profile *profile, struct memtrace_point *point);

/* Resident bytes of a process, 0 where that cannot be read. */
uint64_t timeline_resident(pid_t pid);

/* Notes in the region's header the most that was ever resident of a process (VmHWM). */
void timeline_note_resident_peak(pid_t pid, struct memtrace_header *header);
/* Notes in the header how much of what is resident is MemTrace's own. Costs some microseconds for
 * each MiB that it has there. */
void timeline_note_own_resident(pid_t pid, struct memtrace_header *header);

/* Maps the timeline of a region for writing; NULL where there is none. The caller
 * calls filemap_close() with `size`. */
struct memtrace_timeline *timeline_map(const struct profile *profile, int fd, uint64_t *size);

#endif
