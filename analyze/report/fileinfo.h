/* SPDX-License-Identifier: MIT */
/*
 * fileinfo.h: what a file holds, by its headers alone: no event is looked at.
 *
 * Called by cli/info. Each writes text or one JSON object and returns 0, or -1: out of memory.
 */
#ifndef ANALYZE_REPORT_FILEINFO_H
#define ANALYZE_REPORT_FILEINFO_H

#include "analyze/read/profile.h"
#include "analyze/read/recording.h"
#include "analyze/read/run.h"

#include <stdio.h>

/* A recording in its parts; count: at least 1. */
int fileinfo_recording(FILE *out, const struct recording *const *parts, size_t count, bool json);
/* A run's folder: which files are in it, and whose. */
int fileinfo_run(FILE *out, const struct run *run, bool json);
int fileinfo_profile(FILE *out, const struct profile *profile, bool json);

#endif
