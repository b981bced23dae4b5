/* SPDX-License-Identifier: MIT */
/*
 * recordsample.h: the process as the kernel sees it, sampled into its recording: resident set and
 * the like often, its mappings now and then.
 *
 * Called by collect/record. Belongs to one thread. A process that is gone has no mappings any more:
 * the last ones seen stay the last.
 */
#ifndef COLLECT_RECORDSAMPLE_H
#define COLLECT_RECORDSAMPLE_H

#include "collect/recordfile.h"

#include <sys/types.h>

enum { RECORDSAMPLE_BATCH = 64 };

struct recordsample {
    pid_t pid;
    int statm; /* descriptors of files in /proc and of the cgroup, -1: none */
    int status;
    int cgroup;
    uint64_t next_ns;      /* when the next sample is due */
    uint64_t next_maps_ns; /* and the next look at the mappings */
    uint64_t written_ns;
    uint64_t written_bytes; /* of the file then */
    size_t count;           /* not written yet */
    struct memtrace_sample samples[RECORDSAMPLE_BATCH];
};

void recordsample_open(struct recordsample *sample, pid_t pid);
void recordsample_close(struct recordsample *sample);

/* Takes what is due at this time and writes what has gathered; `last`: everything. `live_bytes`: of
 * the profile's counters. 0, or -1: it could not be written. */
int recordsample_tick(struct recordsample *sample, struct recordfile *file, uint64_t time_ns,
                      uint64_t live_bytes, bool last, struct error *error);

#endif
